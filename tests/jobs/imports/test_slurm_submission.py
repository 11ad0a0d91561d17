"""A pasted `sbatch` whose script is in the same text: the script is the job, and the command's options win."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.diagnostics.errors import BadInput
from jobs.importers import recognition, slurm
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult

IMAGE = "registry.example/train:1.0"
SCRIPT = "#!/bin/bash\n#SBATCH --job-name=digits\n#SBATCH --gres=gpu:a100:4\n#SBATCH --time=60\n\npython train.py\n"


def found_in(text: str, **options: Any) -> ImportResult:
    return slurm.import_job("submit.sh", text.encode(), ImportOptions(**{"image": IMAGE, **options}))


def entries(found: ImportResult) -> dict[str, Any]:
    assert [name for name in found.report.fields if not found.report.is_settled(name)] == []
    return {entry.field: entry for entry in found.report.entries}


FORMS = {
    "a heredoc": f"sbatch <<'EOF'\n{SCRIPT}EOF\n",
    "an operator before options": f"sbatch <<'EOF' --partition=gpu\n{SCRIPT}EOF\n",
    "options before the operator": f"sbatch -p gpu --parsable <<'EOF'\n{SCRIPT}EOF\n",
    "continued lines": f"sbatch \\\n  -p gpu \\\n  <<'EOF'\n{SCRIPT}EOF\n",
    "an assignment in its line": f"P=gpu; sbatch -p $P <<'EOF'\n{SCRIPT}EOF\n",
    "a pipe": f"cat <<'EOF' | sbatch -p gpu\n{SCRIPT}EOF\n",
    "a prompt": f'$ sbatch << "EOF"\n{SCRIPT}EOF\nSubmitted batch job 17\n',
    "an output that a variable takes": f"JOB=$(sbatch --parsable <<'EOF'\n{SCRIPT}EOF\n)\necho $JOB\n",
    "a file that is written first": f"#!/bin/bash\ncat > job.sh <<'EOF'\n{SCRIPT}EOF\nsbatch -p gpu job.sh\n",
    "a file that tee writes": f"tee job.sh > /dev/null <<'EOF'\n{SCRIPT}EOF\nchmod +x job.sh && sbatch ./job.sh\n",
    "tabs": "sbatch <<-'EOF'\n" + "".join(f"\t{line}\n" for line in SCRIPT.splitlines()) + "\tEOF\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    assert recognition.recognize("submit.sh", FORMS[form].encode()).kind == "slurm"
    found = found_in(FORMS[form])
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values == {
        "name": "digits",
        "accelerator": {"type": "a100", "count": 4},
        "timeout_s": 3600,
        "image": IMAGE,
        "command": ["python", "train.py"],
    }
    entries(found)


def test_the_commands_options_win() -> None:
    found = found_in(f"sbatch -J other --time=2:00:00 -N 2 <<'EOF'\n{SCRIPT}EOF\n")
    assert found.values["name"] == "other" and found.values["timeout_s"] == 7200 and found.values["nodes"] == 2
    said = entries(found)
    assert said["--job-name"].kind == "changed" and "line 1 sets it again, and counts" in said["--job-name"].text
    assert "counts" in said["--time"].text and said["--time (line 1)"].kind == "kept"
    assert found.report.places["--job-name"] == "submit.sh:3" and found.report.places["-J"] == "submit.sh:1"


def test_options_alone_need_no_headers() -> None:
    found = found_in("sbatch -J a --gpus=2 <<EOF\n#!/bin/sh\npython train.py\nEOF\n")
    assert found.values["name"] == "a" and found.values["command"] == ["python", "train.py"]
    assert recognition.recognize("submit.sh", b"sbatch -J a --wrap='python t.py'\n").kind == "slurm"
    assert recognition.recognize("submit.sh", b"sbatch -J a <<EOF\n#!/bin/sh\na\nEOF\n").kind == "slurm"


WRITTEN = {
    "cat": f"# the script\ncat << EOF > job.sh\n{SCRIPT}EOF\n",
    "tee": f"mkdir -p runs\ntee runs/job.sh <<'JOB'\n{SCRIPT}JOB\nls runs\n",
    "beside another file": f"cat > train.py <<'EOF'\nprint(1)\nEOF\ncat > job.sh <<'EOF'\n{SCRIPT}EOF\n",
    "submitted from elsewhere": f"cat > job.sh <<'EOF'\n{SCRIPT}EOF\nssh login sbatch job.sh\n",
    "a cell": f"%%writefile job.sh\n{SCRIPT}",
    "shown": f"$ cat runs/job.sh\n{SCRIPT}",
}


@pytest.mark.parametrize("form", WRITTEN)
def test_a_script_that_a_text_writes_or_shows_without_submitting_it(form: str) -> None:
    assert recognition.recognize("page.sh", WRITTEN[form].encode()).kind == "slurm"
    found = found_in(WRITTEN[form])
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values == {
        "name": "digits",
        "accelerator": {"type": "a100", "count": 4},
        "timeout_s": 3600,
        "image": IMAGE,
        "command": ["python", "train.py"],
    }
    entries(found)
    line = WRITTEN[form].split("\n").index("#SBATCH --time=60") + 1
    assert found.report.places["--time"] == f"submit.sh:{line}"


def test_an_unquoted_script_that_is_written_takes_the_texts_variables() -> None:
    text = "N=2\ncat > job.sh <<EOF\n#!/bin/bash\n#SBATCH -N $N\npython t.py $LR \\$SLURM_NNODES\nEOF\n"
    found = found_in(text)
    assert found.values["nodes"] == 2 and [entry.field for entry in found.report.stops] == ["commands"]
    assert "--var LR=<value>" in found.report.stops[0].text
    assert "python t.py 0.1 $SLURM_NNODES" in found_in(text, variables={"LR": "0.1"}).values["command"][-1]


def test_arguments_of_a_script_that_the_text_writes() -> None:
    text = (
        "cat > job.sh <<'EOF'\n#!/bin/bash\n#SBATCH -J a\npython train.py $1 --lr $2\nEOF\nsbatch job.sh digits 0.1\n"
    )
    assert found_in(text).values["command"][-2:] == ["digits", "0.1"]
    assert found_in(text, variables={"2": "0.5"}).values["command"][-2:] == ["digits", "0.5"]


def test_variables_of_an_unquoted_heredoc_are_the_submitting_scripts() -> None:
    text = (
        "LR=0.1\nNAME=run-$LR\nsbatch --job-name=$NAME <<EOF\n#!/bin/bash\n#SBATCH --gres=gpu:$GPUS\n"
        "export LR=$LR\npython train.py --lr ${LR} --out \\$SLURM_JOB_NAME \\$(hostname) --seed $SEED\nEOF\n"
    )
    found = found_in(text)
    assert [entry.field for entry in found.report.stops] == ["--gres", "commands"]
    for name, entry in zip(("GPUS", "SEED"), found.report.stops, strict=True):
        assert f"holds ${name}, which no shell has replaced; give it with --var {name}=<value>" in entry.text
    found = found_in(text, variables={"SEED": "7", "GPUS": "2"})
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values["name"] == "run-0-1" and found.values["accelerator"] == {"count": 2}
    script = found.values["command"][-1]
    assert "export LR=0.1\npython train.py --lr 0.1 --out $SLURM_JOB_NAME $(hostname) --seed 7" in script


def test_a_quoted_heredoc_keeps_its_variables() -> None:
    found = found_in("X=1\nsbatch -J a <<'EOF'\n#!/bin/bash\nX=2\npython train.py $X\nEOF\n")
    assert found.values["command"] == ["bash", "-c", "X=2\npython train.py $X"] and not found.report.stops


def test_what_the_submitting_shell_computes_is_a_decision() -> None:
    found = found_in("sbatch -J a <<EOF\n#!/bin/bash\npython train.py --day $(date +%F)\nEOF\n")
    said = entries(found)["commands"]
    assert said.kind == "decision" and "$(date +%F) is run by the shell that submits, and here by the job" in said.text


def test_a_loop_asks_for_its_variable() -> None:
    text = 'for lr in 0.1 0.2; do\n  sbatch <<EOF\n#!/bin/bash\n#SBATCH -J "lr-$lr"\npython t.py $lr\nEOF\ndone\n'
    assert "--var lr=<value>" in found_in(text).report.stops[0].text
    assert found_in(text, variables={"lr": "0.1"}).values["command"] == ["python", "t.py", "0.1"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("sbatch <<'EOF'\n#!/bin/sh\na\nEOF\nsbatch <<'EOF'\n#!/bin/sh\nb\nEOF\n", "one command `sbatch`, holds 2"),
        ("$ sbatch --array=1-9 job.sh\nSubmitted batch job 17\n", "import the script that it submits"),
        ("sbatch job.sh\n", "import the script that it submits, with these options as #SBATCH lines"),
        ("cat > a.sh <<'EOF'\n#!/bin/sh\na\nEOF\nsbatch b.sh\n", "import the script that it submits"),
        ("sbatch <<'EOF'\n", "import the script that it submits"),
        (
            f"cat > a.sh <<'EOF'\n{SCRIPT}EOF\ncat > b.sh <<'EOF'\n{SCRIPT}EOF\n",
            r"writes 2 scripts of Slurm \(a.sh, b.sh\): import one of them",
        ),
        ("sbatch -J 'a <<EOF\n#!/bin/sh\na\nEOF\n", "cannot be read as a shell would"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        found_in(text)


@pytest.mark.parametrize(
    "text, field, said",
    [
        ("sbatch --frob=3 <<'EOF'\n#!/bin/sh\na\nEOF\n", "--frob", "is no option of Slurm"),
        ("sbatch --wrap=b <<'EOF'\n#!/bin/sh\na\nEOF\n", "--wrap", "Slurm refuses it"),
        ("sbatch -p gpu <<'EOF'\n#!/bin/sh\n#SBATCH --het-group=1\na\nEOF\n", "--het-group", "heterogeneous"),
        ("sbatch -p gpu <<'EOF'\n#!/bin/sh\nEOF\n", "commands", "has no command"),
    ],
)
def test_refusals(text: str, field: str, said: str) -> None:
    entry = entries(found_in(text))[field]
    assert entry.kind == "refused" and said in entry.text, entry.text


def test_lines_around_the_command_are_told() -> None:
    found = found_in(f"module load slurm\nSBATCH_ACCOUNT=a sbatch <<'EOF' | tee log\n{SCRIPT}EOF\nsqueue --me\n")
    said = "; ".join(entries(found)["the command"].why)
    assert "line 1: is not read: it is neither `sbatch` nor NAME=value" in said
    assert "line 2: sets SBATCH_ACCOUNT for sbatch alone" in said and "line 10: is not read" in said
    assert entries(found)["after the command"].kind == "changed"


def test_a_script_with_headers_that_submits_another_is_itself_the_job() -> None:
    text = f"#!/bin/bash\n#SBATCH -J outer\nsbatch <<'EOF'\n{SCRIPT}EOF\n"
    found = found_in(text)
    assert found.values["name"] == "outer" and "submits the text below it" in found.report.stops[0].text


def test_no_secret_is_told() -> None:
    text = f"HF_TOKEN=hunter2zq\nsbatch --export=ALL,A=$HF_TOKEN <<EOF\n{SCRIPT}export B=$HF_TOKEN\nEOF\n"
    found = found_in(text)
    assert found.values["env"] == {"A": "hunter2zq"} and "hunter2zq" in str(found.values["command"])
    assert "hunter2zq" not in "\n".join(entry.text for entry in found.report.entries)
    assert "hunter2zq" not in str(found.report.as_json())


def test_the_command_imports_it(home: Path, invoke: Callable[..., Result]) -> None:
    Path("submit.sh").write_text(FORMS["options before the operator"])
    done = invoke("import", "submit.sh", "--image", IMAGE)
    assert done.exit_code == 0, done.stderr
    assert "name: digits" in done.stdout and "count: 4" in done.stdout
    done = invoke("import", "slurm", "-", "--image", IMAGE, text="sbatch --frob=3 <<'EOF'\n#!/bin/sh\na\nEOF\n")
    assert done.exit_code == 2 and "error: stdin:1: refused: --frob" in done.stderr
