"""What Slurm runs once, on a job's first node or in a step of its own, and a job file's command on each node."""

import re
import subprocess
from typing import Any

import pytest

from tests.jobs.imports.test_slurm import entry, found_in, run, script, values_of

NODES = {"ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX_FROM": "RANK", "ACCEL_MAIN_ADDRESS_FROM": "MAIN"}
SECOND = {**NODES, "RANK": "1", "MAIN": "10.0.0.1"}


@pytest.mark.parametrize(
    "written",
    [
        "$(hostname)",
        "$(hostname --ip-address)",
        "`hostname -s`",
        '"$( hostname -I | cut -d" " -f1 )"',
        "$(srun -N1 -n1 hostname)",
    ],
)
def test_a_script_of_several_nodes_finds_the_first_nodes_name(written: str) -> None:
    found = found_in(script("--nodes=2", body=f"ENDPOINT={written}\nsrun sh -c 'echo '$ENDPOINT:4000"))
    assert run(found.values, **SECOND) == "10.0.0.1:4000\n"
    told = " ".join(each.text for each in found.report.of("decision"))
    assert "first node's address" in told or "the step runs on" in told


def test_a_line_that_only_tells_the_nodes_name_and_a_job_of_one_node_stay() -> None:
    body = 'echo "runs on $(hostname)"\nsrun python t.py --at $(hostname)'
    command = values_of(script("--nodes=2", body=body))["command"][-1]
    assert 'echo "runs on $(hostname)"' in command and "--at $(hostname)" not in command
    assert "--at $(hostname)" in values_of(script("-c 2", body=body))["command"][-1]


def test_random_numbers_are_the_same_on_all_nodes() -> None:
    body = 'PORT=$((20000 + RANDOM % 9000))\nsrun sh -c "echo $PORT $RANDOM"'
    found = found_in(script("--nodes=3", body=body))
    told = {run(found.values, **{**SECOND, "RANK": rank}) for rank in ("0", "1", "2")}
    assert len(told) == 1 and re.fullmatch(r"2\d{4} \d+\n", told.pop())
    assert "RANDOM begins with" in entry(found, "commands").text
    assert "RANDOM=" not in values_of(script("-c 2", body=body))["command"][-1]


@pytest.mark.parametrize(
    "line, named",
    [
        ("RUN=run-$(date +%s)", "date"),
        ("ID=`uuidgen`", "uuidgen"),
        ('PORT="$(shuf -i 20000-30000 -n 1)"', "shuf"),
        ("export MASTER_ADDR=$HOSTNAME", "$HOSTNAME"),
    ],
)
def test_what_differs_from_node_to_node_is_named(line: str, named: str) -> None:
    told = entry(found_in(script("--nodes=2", body=f"{line}\nsrun python t.py")), "commands").text
    assert f"{named} (line 4)" in told and "differs from node to node" in told
    for same in (script("-c 2", body=f"{line}\nsrun python t.py"), script("--nodes=2", body=f"# {line}\nsrun a")):
        assert "differs" not in entry(found_in(same), "commands").text


def test_the_nodes_own_name_is_a_decision_where_there_are_several() -> None:
    assert entry(found_in(script("-N 2", body="srun a $SLURMD_NODENAME")), "$SLURMD_NODENAME").kind == "decision"
    assert entry(found_in(script("-N 1", body="srun a $SLURMD_NODENAME")), "$SLURMD_NODENAME").kind == "kept"


def test_a_steps_folder_is_not_that_of_the_next_step() -> None:
    body = "srun --chdir=/usr pwd\ncd /tmp\nsrun --container-workdir=/usr/bin sh -c pwd\nsrun pwd"
    assert run(values_of(script("-n 1 -N 1", body=body))) == "/usr\n/usr/bin\n/tmp\n"
    twice = run(values_of(script("--ntasks-per-node=2", body="srun --chdir=/usr pwd\npwd"))).splitlines()
    assert twice[:2] == ["/usr", "/usr"] and twice[2] != "/usr"


def test_a_step_of_fewer_processes_has_its_own_numbers() -> None:
    body = "srun -N2 --ntasks-per-node=1 sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'"
    assert run(values_of(script("-N 2", "--ntasks-per-node=4", body=body)), **SECOND) == "1 of 2\n"
    body = "srun -n 1 cat <<END\ntext\nEND\nsrun true"
    assert run(values_of(script("-N 1", "--ntasks-per-node=4", body=body))) == "text\n"


@pytest.mark.parametrize(
    "step, kind, said",
    [("-n 3", "decision", "each runs 2"), ("-n 4", "kept", "2 on each node"), ("-n 2", "kept", "1 on")],
)
def test_a_steps_processes_are_shared_out_to_the_nodes(step: str, kind: str, said: str) -> None:
    found = entry(found_in(script("-N 2", "--ntasks-per-node=4", body=f"srun {step} python t.py")), "srun -n (line 5)")
    assert found.kind == kind and said in found.text, found.text


def test_processes_of_a_node_are_at_most_those_of_the_job() -> None:
    values = values_of(script("-N 2 -n 4 --ntasks-per-node=8 -c 2", body="srun echo $SLURM_NTASKS"))
    assert values["cpus"] == 4 and run(values, **SECOND) == "4\n4\n"
    assert "--ntasks says fewer" in entry(found_in(script("-n 2 --ntasks-per-node=4")), "--ntasks-per-node").text
    step = values_of(script("-N 2 --ntasks-per-node=4", body="srun -n 4 --ntasks-per-node=4 echo a"))
    assert run(step, **SECOND) == "a\na\n"


@pytest.mark.parametrize("body", ["srun python - <<'END'\n1\nEND", "cat a | srun ./read", "srun ./read < a.txt"])
def test_several_processes_of_a_step_have_no_input(body: str) -> None:
    found = found_in(script("--ntasks-per-node=4", body=body))
    assert "standard input" in entry(found, "commands").text and entry(found, "commands").kind == "decision"
    assert "standard input" not in entry(found_in(script("-c 4", body=body)), "commands").text


def test_a_step_exports_variables() -> None:
    found = found_in(script("-c 2", body="srun --export=ALL python a.py"))
    assert entry(found, "srun --export (line 4)").kind == "changed"
    body = "B=2\nsrun --export=ALL,A=$B,C=x sh -c 'echo $A $C'"
    found = found_in(script("-c 2", body=body))
    assert entry(found, "srun --export (line 5)").kind == "changed"
    assert run(found.values) == "2 x\n"
    for other in ("NONE", "A=1", "ALL,A", "HOME,PATH"):
        found = found_in(script("-c 2", body=f"srun --export={other} python a.py"))
        assert entry(found, "srun --export (line 4)").kind == "decision"


@pytest.mark.parametrize("header", ["--exclusive", "--mem=0 --exclusive"])
def test_a_job_of_whole_nodes_has_all_their_cpus(header: str) -> None:
    values = values_of(
        script("-N 2 --ntasks-per-node=8 --gpus-per-node=8", header, body="srun echo $SLURM_CPUS_ON_NODE")
    )
    assert "cpus" not in values and values["accelerator"] == {"count": 8}
    assert values_of(script("--ntasks-per-node=8 -c 2", header))["cpus"] == 16
    assert values_of(script("--ntasks-per-node=8", "--exclusive=user"))["cpus"] == 8


@pytest.mark.parametrize("header", ["-N 2 # of <them>", "--nodes=2  # {{ see }} %%A"])
def test_a_comment_is_no_place_of_a_template(header: str) -> None:
    assert "template" not in entry(found_in(script(header)), header.split("=")[0].split()[0]).text


def failing(values: dict[str, Any]) -> int:
    path = {"PATH": "/usr/bin:/bin", "ACCEL_JOB_NAME": "a"}
    return subprocess.run(values["command"], env=path, check=False, capture_output=True).returncode


def test_a_steps_exit_code_is_that_of_its_program() -> None:
    assert failing(values_of(script("-c 2", body="srun --chdir=/usr sh -c 'exit 5'\nexit $?"))) == 5


def test_a_step_leaves_the_scripts_variables_alone() -> None:
    body = (
        "export n=100 i=0 status=x pids=y\n"
        "while [ $i -lt 3 ]; do srun sh -c 'echo $n.$SLURM_LOCALID' >> $1; i=$((i + 1)); done\n"
        'IFS=,; srun true; echo "$i $n $status $pids"'
    )
    values = values_of(script("--ntasks-per-node=2", body=body), variables={"1": "/dev/stderr"})
    path = {"PATH": "/usr/bin:/bin", "ACCEL_JOB_NAME": "a"}
    done = subprocess.run(values["command"], env=path, check=True, capture_output=True, text=True)
    assert done.stdout == "3 100 x y\n"
    assert sorted(done.stderr.split()) == ["100.0"] * 3 + ["100.1"] * 3


@pytest.mark.parametrize(
    "body", ["export TOKEN=<your-token>", "python t.py --out gs://<bucket>/runs --lr 1", "x <FILE>"]
)
def test_a_place_of_a_page_is_refused(body: str) -> None:
    (stop,) = found_in(script("-c 2", body=body)).report.stops
    assert stop.field == "commands" and "is a placeholder" in stop.text


@pytest.mark.parametrize(
    "body",
    [
        "cat > a.xml <<END\n<name>x</name>\nEND\nrun a.xml",
        "sort <in>out",
        "echo '<b>' \"<name>\" # see <that>",
        'python -c "a <b> c"',
        "diff <(ls a) <(ls b)",
    ],
)
def test_signs_of_a_script_are_no_places(body: str) -> None:
    found = found_in(script("-c 2", body=body))
    assert "placeholder" not in " ".join(each.text for each in found.report.entries)


@pytest.mark.parametrize(
    "line", ["ssh n2 hostname", "for n in a b; do pdsh -w $n ./a & done", "if clush -a x; then y; fi"]
)
def test_a_login_to_other_nodes_is_told(line: str) -> None:
    said = entry(found_in(script("-N 2", body=f"{line}\npython t.py")), "line 4")
    assert said.kind == "decision" and "logs in to a node" in said.text


def test_a_value_that_ends_at_a_number_sign_is_told() -> None:
    cut = found_in(script("--container-image=reg.example#team/train:1", "-c 2 # two", "-J a#b"), image=None)
    assert r"write \# for a part of the value" in entry(cut, "--container-image").text
    assert r"write \#" in entry(cut, "-J").text and r"write \#" not in entry(cut, "-c").text
    whole = found_in(script(r"--container-image=reg.example\#team/train:1", "--comment='a#b'"), image=None)
    assert whole.values["image"] == "reg.example/team/train:1"
    assert r"write \#" not in " ".join(each.text for each in whole.report.entries)


@pytest.mark.parametrize("names, is_first", [("n1", True), ('"$HEAD"', True), ("n[1-2]", False)])
def test_hostname_on_several_named_nodes_is_not_the_first_ones_address(names: str, is_first: bool) -> None:
    command = values_of(script("-N 2", body=f"HEAD=n1\nsrun -w {names} hostname\nsrun python a.py"))["command"][-1]
    assert ("hostname" not in command) is is_first
