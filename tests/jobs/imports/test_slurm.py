"""Slurm's batch scripts as job files: options in every spelling, steps, bodies, and no leaf that is lost."""

import itertools
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from accel.diagnostics.errors import BadInput
from accel.diagnostics.yaml_positions import Tree
from jobs.importers import slurm, slurm_values
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.slurm_options import KNOWN, body_of, directives
from jobs.importers.slurm_script import statements
from jobs.model.document import Document
from jobs.model.job import Job
from tests.jobs.backends import gke_target

IMAGE = "registry.example/train:1.0"
BODY = "python train.py --epochs 3"


def script(*headers: str, body: str = BODY) -> str:
    return "#!/bin/bash\n" + "".join(f"#SBATCH {each}\n" for each in headers) + f"\n{body}\n"


def found_in(text: str, **options: Any) -> ImportResult:
    return slurm.import_job("job.sh", text.encode(), ImportOptions(**{"image": IMAGE, **options}))


def values_of(text: str, **options: Any) -> dict[str, Any]:
    found = found_in(text, **options)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    Document("job.sh", Tree(found.values), Job).job()
    return found.values


def entry(found: ImportResult, field: str) -> Any:
    return next(each for each in found.report.entries if each.field == field)


GPU = {"accelerator": {"count": 1}}
A100X4 = {"accelerator": {"type": "a100", "count": 4}}
HEADERS: dict[str, dict[str, Any]] = {
    "--job-name=train": {"name": "train"},
    "--job-name train": {"name": "train"},
    "-J train": {"name": "train"},
    "-Jtrain": {"name": "train"},
    '--job-name="my job"': {"name": "my-job"},
    "--nodes=2": {"nodes": 2},
    "-N2": {"nodes": 2},
    "-N 2-2": {"nodes": 2},
    "--nodes=2-4": {"nodes": 2},
    "-N 1 -n 1 -c 8": {"cpus": 8},
    "--ntasks=4 --cpus-per-task=2": {"cpus": 8},
    "--ntasks-per-node=4 --cpus-per-task=2 --nodes=2": {"nodes": 2, "cpus": 8},
    "--tasks-per-node=4 --nodes=2": {"nodes": 2, "cpus": 4},
    "--ntasks=8 --nodes=2": {"nodes": 2, "cpus": 4},
    "--ntasks=8 --ntasks-per-node=4": {"nodes": 2},
    "--cpus-per-task 8 # of a node": {"cpus": 8},
    "--cpus-per-gpu=6 --gres=gpu:2": {"cpus": 12, "accelerator": {"count": 2}},
    "--mincpus=4": {"cpus": 4},
    "--gres=gpu:1": GPU,
    "--gres gpu:1": GPU,
    "--gres=gpu": GPU,
    "--gres=gpu:a100:4": A100X4,
    "--gres=gpu:a100:4,nvme:1": A100X4,
    "--gres=gpu:tesla_v100:2": {"accelerator": {"type": "tesla-v100", "count": 2}},
    "--gres='gpu:Tesla V100-PCIE-32GB:1'": {"accelerator": {"type": "tesla-v100-32gb", "count": 1}},
    "--gres=gpu:A100-SXM4-80GB:1": {"accelerator": {"type": "a100-80gb", "count": 1}},
    "--gres=gpu:rtx8000:1": GPU,
    "--gres=gpu:tesla:1": GPU,
    "--gres=gpu:v100l:4": {"accelerator": {"type": "v100-32gb", "count": 4}},
    "--gres=gpu:a100-4g-20gb:1": {
        "accelerator": {"type": "a100", "count": 1},
        "gke": {"gpu_partition": "4g.20gb"},
    },
    "--gres=gpu:1g.5gb:1": {**GPU, "gke": {"gpu_partition": "1g.5gb"}},
    "--gres=gpu:0": {},
    "--gres=none": {},
    "--gpus=2": {"accelerator": {"count": 2}},
    "-G a100:4": A100X4,
    "--gpus=h100:16 --nodes=2": {"nodes": 2, "accelerator": {"type": "h100", "count": 8}},
    "--gpus-per-node=a100:4": A100X4,
    "--gpus-per-task=nvidia.com/gpu:8": {"accelerator": {"count": 8}},
    "--gpus-per-task=1 --ntasks=4": {"accelerator": {"count": 4}},
    "--gpus-per-task=a100:1 --ntasks-per-node=4 --nodes=2": {"nodes": 2, **A100X4},
    "--constraint=a100 --gres=gpu:4": A100X4,
    "-C 'gpu&v100' --gpus=1": {"accelerator": {"type": "v100", "count": 1}},
    "--constraint=haswell": {},
    "--mem=16G": {"memory_mib": 16384},
    "--mem=16000": {"memory_mib": 16000},
    "--mem=16gb": {"memory_mib": 16384},
    "--mem=1T": {"memory_mib": 1024**2},
    "--mem=0": {},
    "--mem-per-cpu=4G --cpus-per-task=4": {"memory_mib": 16384, "cpus": 4},
    "--mem-per-gpu=40G --gres=gpu:2": {"memory_mib": 81920},
    "--tmp=100G": {"disk_gib": 100},
    "--time=30": {"timeout_s": 1800},
    "--time=30:30": {"timeout_s": 1830},
    "-t 1:30:00": {"timeout_s": 5400},
    "--time=2-0": {"timeout_s": 172_800},
    "--time=1-12:30": {"timeout_s": 131_400},
    "--time=1-00:00:01": {"timeout_s": 86_401},
    "--time=UNLIMITED": {},
    "--array=0-9": {"tasks": 10},
    "--array=1-10%2": {"tasks": 10, "parallelism": 2},
    "-a 0-20:5": {"tasks": 5},
    "--array=1,3,7": {"tasks": 3},
    "--array=5": {},
    "--array=0-3%8": {"tasks": 4},
    "--array=[1-10%2]": {"tasks": 10, "parallelism": 2},
    "--no-requeue": {"lost_retries": 0},
    "--requeue": {},
    "--export=ALL,LR=0.1,NAME=a": {"env": {"LR": "0.1", "NAME": "a"}},
    "--export=NONE": {},
    "--exclusive": {},
    "--exclusive=user --nodes=1": {},
    "--signal=B:USR1@120": {},
    "--dependency=afterok:123": {},
    "-p gpu -A team -q high -o %x.out -e %x.err --mail-type=ALL --mail-user=a@example.org": {},
    "--chdir=/home/me -D /home/you": {},
    "--part=gpu": {},
    "--qos=high --reservation=r --nodelist=n1 --exclude=n3 --licenses=a": {},
    "--nodelist=n[1-2]": {"nodes": 2},
    "-w n1,n2,n1": {"nodes": 2},
    "-w rack[0-1]n[08-11],login": {"nodes": 9},
    "--nodes=2 -w n[1-4]": {"nodes": 2},
    "-w n[1-4] --ntasks=8 --ntasks-per-node=2": {"nodes": 4},
    "-w n[1-4] --ntasks=2": {"nodes": 2},
    "-w ./hosts": {},
    "-w n1": {},
    "--mem-per-cpu=4G --exclusive": {},
    "--mem-per-cpu=4G --exclusive --ntasks-per-node=8": {},
    "--mem-per-cpu=4G --exclusive --ntasks-per-node=8 -c 2": {"memory_mib": 65536, "cpus": 16},
    "--mem-per-cpu=4G --exclusive=user --ntasks-per-node=8": {"memory_mib": 32768, "cpus": 8},
    "--hint=nomultithread --distribution=block --switches=1 --nice --comment=x --get-user-env": {},
    f"--container-image={IMAGE}": {"image": IMAGE},
}


@pytest.mark.parametrize("header", HEADERS)
def test_headers(header: str) -> None:
    values = values_of(script(header))
    expected = HEADERS[header]
    assert {name: values.get(name) for name in expected} == expected
    if not expected:
        assert set(values) <= {"name", "image", "command"}


@pytest.mark.parametrize(
    "header, field, kind, said",
    [
        ("--nodes=<count>", "--nodes", "refused", "must be a number of nodes"),
        ("--time=soon", "--time", "refused", "must be a time such as 90"),
        ("--mem=lots", "--mem", "refused", "must be a size such as 16G"),
        ("--array=a-b", "--array", "refused", "must be indices"),
        ("--array=0-9 --nodes=2", "--array", "refused", "several nodes or several tasks"),
        ("--array=1-9%1 --nodes=2", "--array", "refused", "--var SLURM_ARRAY_TASK_ID=1"),
        ("--nodes={{ count }}", "--nodes", "refused", "is a place of a template: write its value"),
        ("--time=%%time%%", "--time", "refused", "is a place of a template"),
        ("--gpu_cmode=shared", "--gpu_cmode", "refused", "where it is of a plugin of the cluster"),
        ("--job-name=", "--job-name", "changed", "Slurm takes the script's name"),
        ("--gpus=16", "--gpus", "kept", ""),
        ("--gpus=32", "--gpus", "decision", "no machine has 32 GPUs"),
        ("--gpus=3 --nodes=2", "--gpus", "decision", "cannot be shared out"),
        ("--gpus=a100:1,v100:1", "--gpus", "refused", "must be one kind of GPU"),
        ("--gpu=1", "--gpu", "refused", "may be --gpu-bind or --gpu-freq or --gpus"),
        ("--gress=gpu:1", "--gress", "refused", "did you mean gres"),
        ("–gres=gpu:1", "–gres", "refused", "write --gres"),
        ("gpu", "gpu", "refused", "is no option: Slurm refuses the script for it"),
        ("--nodes", "--nodes", "refused", "has no value"),
        ("--wrap=x", "--wrap", "refused", "where Slurm refuses it"),
        ("hetjob", "hetjob", "refused", "is a heterogeneous job"),
        ("--ntasks=x", "--ntasks", "refused", "must be an integer"),
        ("--ntasks=4", "--ntasks", "decision", "are on one machine"),
        ("--partition=gpu", "--partition", "decision", "choose a target with --to"),
        ("-p=gpu", "-p", "decision", "follows a short option without ="),
        ("--signal=USR1@60", "--signal", "decision", "SIGTERM"),
        ("--dependency=singleton", "--dependency", "decision", "accel-jobs wait"),
        ("--mail-type=END", "--mail-type", "changed", "monitoring"),
        ("--output=a.log", "--output", "changed", "accel-jobs logs"),
        ("--requeue", "--requeue", "changed", "lost_retries"),
        ("--export=ALL,HOME", "--export", "decision", "environment of who submits"),
        ("--gres=gpu:k80:1", "--gres", "decision", "no longer offered"),
        ("--constraint=skylake", "--constraint", "decision", "names a feature"),
        ("--nodelist=n[1-2]", "--nodelist", "decision", "n[1-2]' -> 'nodes: 2': sets the number of nodes"),
        ("--nodelist=n[1-2] --nodes=2", "--nodelist", "decision", "-> left out: names nodes of the cluster"),
        ("--nodelist=/home/me/hosts", "--nodelist", "decision", "-> 'one node': is no list of names: write --nodes"),
        ("--nodelist=n[1-", "--nodelist", "decision", "-> 'one node': is no list of names: write --nodes"),
        ("--nodefile=hosts", "--nodefile", "decision", "-> 'one node': is no list of names: write --nodes"),
        ("-N 2 -F hosts", "-F", "decision", "-> left out: names nodes of the cluster"),
        ("--mem-per-cpu=4G --exclusive", "--mem-per-cpu", "decision", "-> left out: counts all CPUs of a node"),
        ("--mem-per-cpu=4G --exclusive -c 2", "--mem-per-cpu", "decision", "-> 'memory_mib: 8192': counts all CPUs"),
        ("--mem-per-cpu=4G --exclusive=mcs -c 2", "--mem-per-cpu", "changed", "with 2 CPUs"),
        ("--het-group=1", "--het-group", "refused", "heterogeneous"),
    ],
)
def test_what_is_said_of_a_header(header: str, field: str, kind: str, said: str) -> None:
    found = entry(found_in(script(header)), field)
    assert found.kind == kind and said in found.text, found.text


def test_directives_below_a_command_and_comments_are_not_read() -> None:
    text = "#!/bin/bash\n##SBATCH --mem=1G\n# SBATCH -N 9\n#SBATCH -N 2\npython a.py\n#SBATCH --mem=2G\n"
    found = found_in(text)
    assert found.values["nodes"] == 2 and "memory_mib" not in found.values
    assert "where Slurm does not read it either" in entry(found, "--mem").text
    assert [each.name for each in directives(text)] == ["nodes", "mem"]


def test_a_directive_without_a_space_is_read() -> None:
    assert found_in("#!/bin/bash\n#SBATCH--nodes=2\n#SBATCH -c 4\npython a.py\n").values["nodes"] == 2


def test_a_job_of_whole_nodes_has_the_gpus_of_its_step() -> None:
    found = found_in(script("--exclusive", body="srun -l hostname -f\nsrun --gres=gpu:a100:8 python a.py"))
    assert found.values["accelerator"] == {"type": "a100", "count": 8}
    said = entry(found, "srun --gres (line 5)")
    assert said.kind == "kept" and "is the step's, and the job names none" in said.text
    several = found_in(script("--exclusive", body="srun --gres=gpu:1 a &\nsrun --gres=gpu:1 b &\nwait"))
    assert "where they run at once" in entry(several, "srun --gres (line 4)").text
    unknown = found_in(script("--exclusive", body="srun --gres=gpu:$N python a.py"))
    assert "accelerator" not in unknown.values
    assert "write --gpus-per-node" in entry(unknown, "srun --gres (line 4)").text


@pytest.mark.parametrize(
    "step, own", [("--gres=gpu:1", "1"), ("--gpus=2", "2"), ("-n 4 --gpus-per-task=1", "each process")]
)
def test_a_step_that_has_some_of_its_nodes_gpus(step: str, own: str) -> None:
    found = found_in(script("--gres=gpu:4", body=f"srun {step} python a.py & wait"))
    said = next(each for each in found.report.entries if re.match(r"srun --g", each.field))
    assert said.kind == "decision" and f"sees all 4 GPUs of its node, and in Slurm {own}" in said.text


@pytest.mark.parametrize(
    "before, step, count",
    [
        ("", "srun -N $SLURM_NNODES -n $SLURM_NTASKS", 4),
        ("", "srun --nodes=${SLURM_JOB_NUM_NODES} --ntasks-per-node=$SLURM_NTASKS_PER_NODE", 4),
        ("", "srun -n $((SLURM_NNODES * 2))", 2),
        ("export N=$(($SLURM_NNODES*8)) # all", "srun -n ${N}", 8),
        ("GPUS=2\nN=$(( $SLURM_JOB_NUM_NODES * GPUS ))", "srun -n $N", 2),
    ],
)
def test_numbers_of_a_step_that_the_script_computes(before: str, step: str, count: int) -> None:
    found = found_in(script("-N 3", "--ntasks-per-node=4", body=f"{before}\n{step} {BODY}"), image=IMAGE)
    assert f"run_tasks {count} {BODY}" in found.values["command"][-1]
    said = [each for each in found.report.entries if each.field.startswith("srun")]
    assert said and {each.kind for each in said} == {"kept"}


@pytest.mark.parametrize(
    "before", ["", "N=$(nproc)", "N=$((SLURM_NNODES * 2))\nN=$((SLURM_NNODES * 4))", "N=$((X * 2))"]
)
def test_a_number_of_a_step_that_is_not_known_is_a_decision(before: str) -> None:
    found = found_in(script("-N 3", "--ntasks-per-node=4", body=f"{before}\nsrun -n $N {BODY}"), image=IMAGE)
    (said,) = [each for each in found.report.entries if each.field.startswith("srun")]
    assert said.kind == "decision" and "is taken for the job's own number" in said.text
    assert f"run_tasks 4 {BODY}" in found.values["command"][-1]


def test_an_option_that_is_set_twice_has_its_last_value() -> None:
    found = found_in(script("--mem=1G", "--mem=2G"))
    assert found.values["memory_mib"] == 2048
    assert entry(found, "--mem").kind == "changed" and entry(found, "--mem (line 3)").kind == "kept"


BODIES: dict[str, Any] = {
    "python train.py --lr 0.1": ["python", "train.py", "--lr", "0.1"],
    "srun python train.py": ["python", "train.py"],
    "srun --label -u python train.py": ["python", "train.py"],
    "torchrun --nproc-per-node 4 \\\n  train.py": ["torchrun", "--nproc-per-node", "4", "train.py"],
    "srun -n 1 torchrun train.py 'a b'": ["torchrun", "train.py", "a b"],
    "singularity exec --nv t.sif python train.py": ["python", "train.py"],
    "srun apptainer exec --nv -B /data:/data t.sif python train.py": ["python", "train.py"],
    "srun --container-image=x.sqsh --container-mounts=$PWD:/work python train.py": ["python", "train.py"],
    "mpirun -np 4 python train.py": ["mpirun", "-np", "4", "python", "train.py"],
    "apptainer exec --pwd /src t.sif python train.py": "cd /src && python train.py",
    "apptainer exec --env A=b t.sif python train.py": ["env", "A=b", "python", "train.py"],
    "shifter --image=docker:a/b:1 python train.py": ["python", "train.py"],
    "module load cuda\npython train.py": ":\npython train.py",
    "module purge; ml cuda; python train.py": ":; :; python train.py",
    "source activate torch && python train.py": ": && python train.py",
    "source ~/.bashrc\nconda activate t\npython t.py": ":\n:\npython t.py",
    'eval "$(conda shell.bash hook)"\npython t.py': ":\npython t.py",
    "source venv/bin/activate\npython t.py": ":\npython t.py",
    "if true; then srun python t.py & fi; wait": "if true; then python t.py & fi; wait",
    "cat <<END > a.txt\nsrun nothing\nEND\nsrun python t.py": "cat <<END > a.txt\nsrun nothing\nEND\npython t.py",
    "echo 'srun x' # srun y\nsrun python t.py > out 2>&1": "echo 'srun x' # srun y\npython t.py > out 2>&1",
    "OMP_NUM_THREADS=4 srun python t.py; date": "OMP_NUM_THREADS=4 python t.py; date",
    "squeue -j 1\npython t.py": ":\npython t.py",
    "srun -l docker build -t a .\npython t.py": ":\npython t.py",
    "timeout 1h srun -u python t.py": ["timeout", "1h", "python", "t.py"],
    "stdbuf -oL -eL srun python t.py; date": "stdbuf -oL -eL python t.py; date",
    "time -p srun -l python t.py": ["time", "-p", "python", "t.py"],
    "mpirun -np 4 apptainer exec --nv t.sif python t.py": ["mpirun", "-np", "4", "python", "t.py"],
    'ARGS=" --wait=60 --label "\nsrun $ARGS --jobid 1 python t.py': 'ARGS=" --wait=60 --label "\npython t.py',
    'A=" \\\n --label"\nsrun $A python t.py': 'A=" \\\n --label"\npython t.py',
    "apptainer exec $NV --overlay a.ext3:ro t.sif python t.py": ["python", "t.py"],
    'NV="--nv"\napptainer exec $NV t.sif python t.py': 'NV="--nv"\npython t.py',
    'A=(\n  --mpi=pmix\n)\nsrun "${A[@]}" -l python t.py': "A=(\n  --mpi=pmix\n)\npython t.py",
    'RUN="srun --label"\n$RUN python t.py': 'RUN="srun --label"\npython t.py',
    'export SING="singularity exec --nv t.sif"\n${SING} python t.py': (
        'export SING="singularity exec --nv t.sif"\npython t.py'
    ),
    'GO="srun -u python"\n$GO t.py': 'GO="srun -u python"\npython t.py',
    "srun --container-workdir=/src python t.py": "cd /src && python t.py",
    'srun --chdir "$HOME/a b" python t.py': 'cd "$HOME/a b" && python t.py',
    "A=1 srun --chdir=/src python t.py": """A=1 sh -c 'cd "$0" && exec "$@"' /src python t.py""",
    "apptainer exec --env A=$HOME t.sif python t.py": 'env "A=$HOME" python t.py',
    "singularity pull t.sif docker://a/b:1\npython t.py": ":\npython t.py",
}


@pytest.mark.parametrize("body", BODIES)
def test_bodies(body: str) -> None:
    command = values_of(script("--gres=gpu:1", body=body))["command"]
    assert (command if isinstance(BODIES[body], list) else command[-1]) == BODIES[body]


@pytest.mark.parametrize(
    "body, field, kind, said",
    [
        ("module load cuda/12", "line 4", "decision", "the image has to have what it brings"),
        ("sbatch next.sh", "line 4", "decision", "submits another job"),
        ("docker run a b", "line 4", "decision", "starts a container inside"),
        ("docker ps\npython t.py", "line 4", "decision", "calls docker, which a job has none of"),
        ("srun ch-run a.sqfs -- python t.py", "line 4", "decision", "starts a container inside"),
        ("srun -l docker run a b", "line 4", "decision", "starts a container inside"),
        ("enroot import docker://a/b\npython t.py", "line 4", "decision", "asks for an image of the cluster"),
        ("srun --pty bash", "srun --pty (line 4)", "refused", "accel-jobs exec"),
        ("srun --multi-prog a.conf", "srun --multi-prog (line 4)", "refused", "make a job of each"),
        ("srun --mpi=pmix python a.py", "srun --mpi (line 4)", "decision", "MASTER_ADDR"),
        ("srun -n 2 python a.py", "srun -n (line 4)", "kept", "2 on each node"),
        ("srun --frob=3 python a.py", "srun --frob (line 4)", "refused", "is no option of Slurm"),
        ("singularity exec --bind /a:/b x.sif python a.py", "singularity --bind (line 4)", "decision", "--mount /b="),
        ("python a.py /scratch/me/data", "commands", "decision", "folders of the cluster (/scratch/me/data)"),
        ("python a.py $1", "commands", "decision", "--var 1=<value>"),
        ("echo $SLURM_CLUSTER_NAME", "$SLURM_CLUSTER_NAME", "decision", "--var SLURM_CLUSTER_NAME=<value>"),
        ("echo ${SLURM_X:-1}", "$SLURM_X", "decision", "what the script says for that"),
        ("echo $SLURM_JOB_ID", "$SLURM_JOB_ID", "decision", "made of the job's name"),
        ("echo $SLURM_NNODES", "$SLURM_NNODES", "kept", "set before the script"),
        ("echo $SLURM_ARRAY_TASK_ID", "$SLURM_ARRAY_TASK_ID", "decision", "write #SBATCH --array"),
        ("# nothing", "commands", "refused", "has no command"),
        ("srun", "commands", "refused", "names no program"),
        ('RUN="srun -n $((2 * 2))"\n$RUN python t.py', "line 4", "decision", "write the program alone"),
        ("srun --gres=gpu:1 python a.py &", "srun --gres (line 4)", "changed", "has the job's GPUs"),
        ("sbatch <<EOF\n#SBATCH -N 2\npython t.py\nEOF", "line 4", "decision", "submits the text below it"),
        (
            "apptainer run t.sif",
            "apptainer run (line 4)",
            "refused",
            "write the one that the image's run script starts",
        ),
        (
            "srun --container-mounts=$D:$D python a.py",
            "srun --container-mounts (line 4)",
            "decision",
            "--mount <path>=",
        ),
        ('A=" --label"\nsrun $A python t.py', "srun $A (line 5)", "decision", "holds options"),
        ('bash -c "srun python t.py"', "line 4", "decision", "calls srun in a text"),
        ('X="srun a"; X="srun b"\n$X python t.py', "line 4", "decision", "write the program alone"),
    ],
)
def test_what_is_said_of_a_body(body: str, field: str, kind: str, said: str) -> None:
    found = entry(found_in(script("--gres=gpu:1", body=body)), field)
    assert found.kind == kind and said in found.text, found.text


@pytest.mark.parametrize(
    "text, image",
    [
        (script("--container-image=nvcr.io/nvidia/pytorch:24.01-py3"), "nvcr.io/nvidia/pytorch:24.01-py3"),
        (script(r"--container-image=nvcr.io\#nvidia/pytorch:24.01-py3"), "nvcr.io/nvidia/pytorch:24.01-py3"),
        (script("--image=docker:nersc/pytorch:24.1"), "nersc/pytorch:24.1"),
        (script("-c 2", body="srun --container-image docker://a/b:1 python t.py"), "a/b:1"),
        (script("-c 2", body="apptainer exec docker://a/b:1 python t.py"), "a/b:1"),
        (script("-c 2", body="IMG=docker://a/b:1\napptainer exec $IMG python t.py"), "a/b:1"),
        (script("-c 2"), None),
        (script("--container-image=/images/t.sqsh"), None),
        (script("-c 2", body="apptainer exec $IMG python t.py"), None),
        (script("-c 2", body="srun --container-image=a/b:1 x\nsrun --container-image=a/c:1 y"), None),
    ],
)
def test_images(text: str, image: str | None) -> None:
    found = found_in(text, image=None)
    assert found.values.get("image") == image
    assert bool(found.report.stops) == (image is None)
    assert image or "--image" in found.report.stops[0].text
    assert found_in(text).values["image"] == IMAGE


LISTED = """\
declare -a ARGS=(
    --container-image nvcr.io/nvidia/pytorch:24.10-py3 # the image
    --container-mounts "$DATA:/data"
)
DATA=/fsx
srun "${ARGS[@]}" -l python t.py
"""


def test_options_in_a_list() -> None:
    found = found_in(script("-c 2", body=LISTED), image=None)
    assert found.values["image"] == "nvcr.io/nvidia/pytorch:24.10-py3" and not found.report.stops
    assert found.values["command"][-1].endswith("python t.py") and "srun" not in found.values["command"][-1]
    assert "--mount /data=" in entry(found, "srun --container-mounts (line 9)").text
    conditional = "if x; then\n  " + LISTED.replace("\n)\n", "\n)\nfi\n")
    for changed in (f"{LISTED}ARGS+=(-n 2)", LISTED.replace("# the image", "$(cat image)"), conditional):
        told = "\n".join(each.text for each in found_in(script("-c 2", body=changed), image=None).report.entries)
        assert "srun ${ARGS[@]}" in told and "holds options, which are left out" in told


def test_choices_of_the_user() -> None:
    text = script("-p gpu", body='apptainer exec -B /a:/data:ro x.sif python t.py "$1" $SLURM_CLUSTER_NAME')
    variables = {"gpu": "training", "1": "one", "SLURM_CLUSTER_NAME": "c"}
    found = found_in(text, variables=variables, mounts={"/data": "gs://acme/data"})
    assert entry(found, "-p").new == "--to training"
    assert found.values["mounts"] == [{"source": "gs://acme/data", "path": "/data", "read_only": True}]
    assert found.values["command"][-2:] == ["script", "one"]
    assert "export SLURM_CLUSTER_NAME=c" in found.values["command"][2]


def run(values: dict[str, Any], **environment: str) -> str:
    """What the command prints."""
    argv = values["command"]
    path = {"PATH": "/usr/bin:/bin", "ACCEL_JOB_NAME": values["name"]}
    return subprocess.run(argv, env={**path, **environment}, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "array, ids", [("0-2", [0, 1, 2]), ("4-8:2", [4, 6, 8]), ("1,3,9", [1, 3, 9]), ("7", [7])]
)  # fmt: skip
def test_tasks_have_the_indices_of_the_array(array: str, ids: list[int]) -> None:
    values = values_of(script(f"--array={array}", body="echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"))
    for index, of in enumerate(ids):
        told = run(values, ACCEL_TASK_INDEX_FROM="BATCH_TASK_INDEX", BATCH_TASK_INDEX=str(index))
        assert told == f"{of} of {len(ids)}\n"


@pytest.mark.parametrize("shell", ["/bin/bash -l", "/bin/sh", "/usr/bin/env bash"])
def test_steps_run_on_each_node_as_often_as_srun_would(shell: str) -> None:
    body = "srun sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $CUDA_VISIBLE_DEVICES'"
    text = script("--nodes=2", "--ntasks-per-node=2", "--gpus-per-task=1", body=body).replace("/bin/bash", shell, 1)
    told = run(
        values_of(text), ACCEL_NODE_COUNT="2", ACCEL_NODE_INDEX_FROM="RANK", RANK="1", ACCEL_MAIN_ADDRESS_FROM="M"
    )
    assert sorted(told.splitlines()) == ["2 0 1 4 0", "3 1 1 4 1"]


@pytest.mark.parametrize(
    "call", ["exec srun", "nohup srun", "command srun", "time srun", "timeout 9 srun", "A=1 srun --chdir=/", "$RUN"]
)
def test_steps_that_are_called_through_others_run_as_often(call: str) -> None:
    body = f"RUN='srun -l'\n{call} sh -c 'exit $((SLURM_LOCALID + 3))'"
    values = values_of(script("--ntasks-per-node=2", body=body))
    path = {"PATH": "/usr/bin:/bin", "ACCEL_JOB_NAME": "a"}
    done = subprocess.run(values["command"], env=path, check=False, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr


def test_the_first_nodes_address_is_that_of_the_main_node() -> None:
    body = (
        "nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )\n"
        'ip=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname --ip-address)\n'
        'echo "${nodes[0]} $ip $SLURM_NNODES $SLURM_JOB_NAME"'
    )
    values = values_of(script("--nodes=2", "-J a", body=body))
    names = {"ACCEL_NODE_COUNT": "2", "ACCEL_MAIN_ADDRESS_FROM": "MASTER_ADDR"}
    assert run(values, MASTER_ADDR="10.0.0.1", **names) == "10.0.0.1 10.0.0.1 2 a\n"
    assert run(values, **names) == "127.0.0.1 127.0.0.1 2 a\n"


def test_a_failed_task_fails_the_step() -> None:
    values = values_of(script("--ntasks-per-node=2", body="srun sh -c 'exit $SLURM_LOCALID'\nexit $?"))
    done = subprocess.run(values["command"], env={"PATH": "/usr/bin:/bin", "ACCEL_JOB_NAME": "a"}, check=False)
    assert done.returncode == 1


def test_a_python_script() -> None:
    text = "#!/usr/bin/env python3\n#SBATCH --array=2-3\nimport os\nprint(os.environ['SLURM_ARRAY_TASK_ID'])\n"
    assert run(values_of(text), ACCEL_TASK_INDEX="1") == "3\n"
    assert values_of(text.replace("--array=2-3", "-c 2"))["command"][:2] == ["python3", "-c"]
    found = found_in("#!/usr/bin/perl\n#SBATCH -c 2\nprint 1;\n")
    assert "another interpreter" in found.report.stops[0].text


def test_commands_without_directives() -> None:
    values = values_of("srun --gpus=2 --mem=8G -c 4 python train.py\n")
    assert values["command"] == ["python", "train.py"] and values["memory_mib"] == 8192
    values = values_of('sbatch -J a --gres=gpu:1 --wrap="python train.py"\n')
    assert values["command"] == ["python", "train.py"] and values["name"] == "a"
    for text, said in (
        ("sbatch --gres=gpu:1 job.sh\n", "import the script that it submits"),
        ("echo\n", "is no Slurm"),
    ):
        with pytest.raises(BadInput, match=said):
            found_in(text)


WHOLE = script(
    "-J whole --nodes=2 --ntasks-per-node=4",
    "--gpus-per-node=a100:4 -c 8 --mem=200G --time=1-0 # long",
    "-p gpu --account team --output=%x.log --export=ALL,TOKEN=x",
    "--container-image=nvcr.io/nvidia/pytorch:24.01-py3 --container-mounts=/data:/data",
    body="module load cuda\nexport MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)\n"
    "srun --mpi=pmix --kill-on-bad-exit=1 python train.py --epochs 3\necho $SLURM_JOB_ID\n",
)
SAMPLES = [WHOLE, *(script(header) for header in HEADERS), *(script("-c 2", body=body) for body in BODIES)]


@pytest.mark.parametrize("text", SAMPLES)
def test_each_option_and_each_line_of_the_body_is_accounted_for(text: str) -> None:
    """The law: what is in the script is in the job's command, or an entry of the report says what became of it."""
    found = found_in(text)
    fields = {each.field.partition(" (")[0] for each in found.report.entries}
    for option in directives(text):
        assert option.written in fields, option
    command = "\n".join(found.values.get("command", []))
    named = {each.field for each in found.report.entries if each.kind != "kept"}
    for number, line in enumerate(body_of(text).split("\n"), 1):
        words = [word for word in line.split() if word.strip("\\\"'")]
        if line.startswith("#") or not words or f"line {number}" in named:
            continue
        lost = [word for word in words if word.strip("\\\"'") not in command]
        said = " ".join(f"{each.field} {each.old}" for each in found.report.entries)
        assert all(word.partition("=")[0] in said for word in lost if word not in ("srun", "singularity")), (line, lost)


@pytest.mark.parametrize("at", range(12))
def test_an_unknown_option_is_refused_wherever_it_stands(at: int) -> None:
    lines = WHOLE.split("\n")
    places = [number for number, line in enumerate(lines) if line.startswith(("#SBATCH", "srun"))]
    line = places[at % len(places)]
    unknown = ("--frobnicate=7", "-Y7", "--frobnicate 7")[at // len(places) % 3]
    head, _, rest = lines[line].partition(" ")
    found = found_in("\n".join([*lines[:line], f"{head} {unknown} {rest}", *lines[line + 1 :]]))
    entries = [each for each in found.report.entries if "--frobnicate" in each.field or "-Y" in each.field]
    assert entries and {each.kind for each in entries} == {"refused"}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_option_is_kept_only_where_the_job_changes_with_it(name: str) -> None:
    plain = found_in(script("-J a")).values
    for value in ("3", "7"):
        found = found_in(script("-J a", f"--{name}={value}"))
        entries = [each for each in found.report.entries if each.field == f"--{name}"]
        assert len(entries) == 1
        if entries[0].kind == "kept" and name not in ("ntasks-per-node", "tasks-per-node"):
            assert found.values != plain or name in ("job-name",), entries[0].text


def test_values() -> None:
    assert slurm_values.seconds("1-2:3:4") == 93_784 and slurm_values.seconds("-5") is None
    assert slurm_values.indices("0-1,1-2") == slurm_values.Indices((0, 1, 2), None)
    assert slurm_values.indices("5-1") is None and slurm_values.indices("0-9999999") is None
    assert slurm_values.gres("gpu:2,gpu:1") is None and slurm_values.nodes("3-2") is None


@pytest.mark.parametrize("text", ["$(" * 9000, "`" * 9000, "('\"$((" * 9000, "<<A\n" * 5000, "a\\\n" * 9000])
def test_shell_text_that_never_ends_is_read_at_once(text: str) -> None:
    assert statements(text) is not None


def test_many_variables_are_read_at_once() -> None:
    lines = [f'RUN{number}="srun -l"; A{number}="-l"\n$RUN{number} $A{number} a' for number in range(2000)]
    assert "a\n" in found_in(script("-c 2", body="\n".join(lines))).values["command"][-1]


def test_as_a_command(home: Path, invoke: Callable[..., Result]) -> None:
    Path("job.sh").write_text(script("-J digits", "--gres=gpu:a100:4", body="echo $SLURM_JOB_NAME\npython train.py"))
    done = invoke("import", "job.sh", "--image", gke_target.IMAGE)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("job.sh: is read as slurm: a Slurm batch script, by its lines #SBATCH\n")
    values = yaml.safe_load(done.stdout)
    assert "  python train.py" in done.stdout.splitlines()
    container = gke_target.spec_of(**values)["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "4" and container["command"][0] == "bash"
    as_json = invoke("import", "job.sh", "--image", gke_target.IMAGE, "-o", "json")
    assert json.loads(as_json.stdout) == values
    undecided = invoke("import", "slurm", "job.sh")
    assert undecided.exit_code == 2 and "say --image" in undecided.stderr
    assert invoke("import", "job.sh", "--capacity", "spot").exit_code == 2


def test_it_runs_on_this_machine(home: Path, invoke: Callable[..., Result]) -> None:
    Path("local/hello").mkdir(parents=True)
    Path("job.sh").write_text(script("-J hello", "--array=4-5", body="echo task $SLURM_ARRAY_TASK_ID\necho done"))
    done = invoke("import", "job.sh", "--image", "local/hello")
    assert done.exit_code == 0, done.stderr
    Path("job.yaml").write_text(done.stdout)
    checked = invoke("validate", "job.yaml", "--to", "local")
    assert checked.exit_code == 0, checked.stderr
    values = yaml.safe_load(done.stdout)
    told = [run(values, ACCEL_TASK_INDEX=str(index)) for index in range(2)]
    assert told == ["task 4\ndone\n", "task 5\ndone\n"]
    assert len(list(itertools.chain(told))) == values["tasks"]
