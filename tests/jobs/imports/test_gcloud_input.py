"""Pasted commands of gcloud that read their document from standard input: a pipe, a redirection, a heredoc."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from jobs.importers.script_text import readable

IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"
JOB = json.dumps(
    {"taskGroups": [{"taskSpec": {"runnables": [{"container": {"imageUri": IMAGE, "commands": ["train"]}}]}}]}
)
POOL = {"machineSpec": {"machineType": "n1-standard-8"}, "replicaCount": 1, "containerSpec": {"imageUri": IMAGE}}
SPEC = json.dumps({"workerPoolSpecs": [POOL]})
SUBMIT = "gcloud batch jobs submit crops --location us-central1 --config"
CREATE = "gcloud ai custom-jobs create --display-name=crops --region=us-central1 --config"

FORMS = [
    "cat {file} | {command} -",
    "cat {file} | {command}=-",
    "cat './{file}'|{command} /dev/stdin",
    "$ cat {file} | PYTHONWARNINGS=ignore {command} -",
    "cat {file} | \\\n  {command} -",
    "cat {file} |\n  {command} -",
    "{command} - < {file}",
    "{command}=- <{file} --verbosity=error",
    "{command} \\\n  - \\\n  < {file}",
    "{command} - < {file} 2>&1 | tee log",
    "FILE={file}\ncat $FILE | {command} -",
    "DIR=.\ncat \"$DIR\"/{file} | {command} -",
    "FILE={file}\n{command} - < \"${{FILE}}\"",
    "NAME=$(cat {file} | {command} -)",
    "cat > other.json <<EOF\n{document}\nEOF\ncat other.json | {command} -",
    "cat <<EOF | {command} -\n{document}\nEOF",
    "cat - <<'EOF' | {command} -\n{document}\nEOF",
    "cat <<EOF | {command} \\\n  -\n{document}\nEOF",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command, document, kind", [(SUBMIT, JOB, "google-batch"), (CREATE, SPEC, "vertex")])
def test_forms(form: str, command: str, document: str, kind: str, home: Path, invoke: Callable[..., Result]) -> None:
    Path("job.json").write_text(document)
    done = invoke("import", "-", text=form.format(file="job.json", command=command, document=document) + "\n")
    assert done.exit_code == 0, done.stderr
    assert f"is read as {kind}" in done.stderr and f"image: {IMAGE}" in done.stdout


def test_a_file_is_found_beside_the_text(home: Path, invoke: Callable[..., Result]) -> None:
    Path("scripts").mkdir()
    Path("scripts/job.json").write_text(JOB)
    for name, line in (("a.sh", f"cat job.json | {SUBMIT} -"), ("b.sh", f"{SUBMIT} - < job.json")):
        Path("scripts", name).write_text(f"{line}\n")
        done = invoke("import", f"scripts/{name}")
        assert done.exit_code == 0 and f"image: {IMAGE}" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "line, message",
    [
        (f"cat gone.json | {SUBMIT} -", "stdin: --config gone.json: cannot be read: No such file or directory"),
        (f"{CREATE}=- < gone.json", "stdin: --config gone.json: cannot be read: No such file or directory"),
        (f"cat $FILE | {SUBMIT} -", "stdin: --config: holds $FILE, which no shell has replaced; give --var FILE="),
        (f"{SUBMIT} -", "stdin: --config -: is the command's input, which is not in the text; write a file's name"),
        (f"{SUBMIT} /dev/stdin", "stdin: --config /dev/stdin: is the command's input, which is not in the text"),
        (f"{SUBMIT} - < <(envsubst < job.json)", "stdin: --config -: is the command's input, which is not in the text"),
    ],
)
def test_what_is_one_line(line: str, message: str, home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "-", text=f"{line}\n")
    assert (done.exit_code, done.stdout) == (2, "") and message in done.stderr, done.stderr
    assert len([each for each in done.stderr.splitlines() if each.startswith("error")]) == 1


def test_an_input_that_the_command_does_not_read(home: Path, invoke: Callable[..., Result]) -> None:
    Path("job.json").write_text(JOB)
    for line in (f"cat other.json | {SUBMIT} job.json", f"{SUBMIT} job.json < other.json"):
        done = invoke("import", "-", text=f"{line}\n")
        assert done.exit_code == 0 and "changed: after the command" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "cat -n job.json | gcloud batch jobs submit n --config -",
        "cat a b | gcloud batch jobs submit n --config -",
        "cat job.json | grep gcloud",
        "cat job.json | jq . | gcloud batch jobs submit n --config -",
        "echo cat job.json | gcloud batch jobs submit n --config -",
    ],
)
def test_pipes_that_stay_as_they_are(text: str) -> None:
    assert readable(text) == text
