"""Pasted commands of the AWS CLI that read their document from standard input: a pipe, a redirection, a heredoc."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

IMAGE = "acme/train:1"
JOB = json.dumps(
    {"jobName": "n", "jobQueue": "gpu", "jobDefinition": "d", "containerOverrides": {"command": ["train"]}}
)
DEFINITION = json.dumps(
    {"jobDefinitionName": "d", "type": "container", "containerProperties": {"image": IMAGE, "command": ["train"]}}
)
SUBMIT = "aws batch submit-job"
REGISTER = "aws batch register-job-definition"

FORMS = [
    "cat {file} | {command} --cli-input-json file:///dev/stdin",
    "cat {file} | {command} --cli-input-json=file:///dev/stdin --region us-east-1",
    "$ cat './{file}'|AWS_PROFILE=me {command} --cli-input-json file:///dev/stdin",
    "cat {file} | \\\n  {command} \\\n  --cli-input-json file:///dev/stdin",
    "cat {file} |\n  {command} --cli-input-json file:///dev/stdin",
    "{command} --cli-input-json file:///dev/stdin < {file}",
    "{command} --cli-input-json file:///dev/stdin <{file} --query jobId",
    "FILE={file}\ncat $FILE | {command} --cli-input-json file:///dev/stdin",
    "ID=$(cat {file} | {command} --cli-input-json file:///dev/stdin --query jobId --output text)",
    "cat > other.json <<EOF\n{document}\nEOF\ncat other.json | {command} --cli-input-json file:///dev/stdin",
    "cat <<EOF | {command} --cli-input-json file:///dev/stdin\n{document}\nEOF",
    "cat <<'EOF' | {command} --region us-east-1 --cli-input-yaml file:///dev/stdin\n{document}\nEOF",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command, document", [(SUBMIT, JOB), (REGISTER, DEFINITION)])
def test_forms(form: str, command: str, document: str, home: Path, invoke: Callable[..., Result]) -> None:
    Path("job.json").write_text(document)
    done = invoke("import", "-", text=form.format(file="job.json", command=command, document=document) + "\n")
    assert done.exit_code == 0, done.stderr
    assert "is read as aws-batch" in done.stderr and "command: [train]" in done.stdout.replace("\n- train", " [train]")
    assert "after the command" not in done.stderr, done.stderr


def test_the_options_of_a_piped_command_are_read(home: Path, invoke: Callable[..., Result]) -> None:
    line = f"{SUBMIT} --cli-input-json file:///dev/stdin --timeout attemptDurationSeconds=60"
    Path("job.json").write_text(JOB)
    for text in (f"cat job.json | {line}\n", f"cat <<EOF | {line}\n{JOB}\nEOF\n"):
        done = invoke("import", "-", text=text)
        assert done.exit_code == 0 and "timeout_s: 60" in done.stdout, (done.stdout, done.stderr)


def test_one_option_is_read_from_the_input(home: Path, invoke: Callable[..., Result]) -> None:
    Path("a.json").write_text('{"command": ["train"]}')
    line = f"{SUBMIT} --job-name n --job-queue q --job-definition d --container-overrides file:///dev/stdin < a.json\n"
    done = invoke("import", "-", text=line)
    assert done.exit_code == 0 and "- train" in done.stdout, (done.stdout, done.stderr)


def test_a_file_is_found_beside_the_text(home: Path, invoke: Callable[..., Result]) -> None:
    Path("scripts").mkdir()
    Path("scripts/job.json").write_text(JOB)
    Path("scripts/a.sh").write_text(f"cat job.json | {SUBMIT} --cli-input-json file:///dev/stdin\n")
    done = invoke("import", "scripts/a.sh")
    assert done.exit_code == 0 and "- train" in done.stdout, done.stderr


IS_INPUT = "stdin: --cli-input-json /dev/stdin: is the command's input, which is not in the text; write a file's name"


@pytest.mark.parametrize(
    "line, message",
    [
        ("cat gone.json | {0}", "stdin: --cli-input-json gone.json: cannot be read: No such file or directory"),
        ("{0} < gone.json", "stdin: --cli-input-json gone.json: cannot be read: No such file or directory"),
        ("cat $FILE | {0}", "stdin: --cli-input-json: holds $FILE, which no shell has replaced; write the file's name"),
        ("{0}", IS_INPUT),
        ("{0} < <(envsubst < job.json)", IS_INPUT),
    ],
)
def test_what_is_one_line(line: str, message: str, home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "-", text=line.format(f"{SUBMIT} --cli-input-json file:///dev/stdin") + "\n")
    assert (done.exit_code, done.stdout) == (2, "") and message in done.stderr, done.stderr
