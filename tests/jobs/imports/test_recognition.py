"""`accel-jobs import FILE`: what a file is, by its keys or its command; what it is not is said in one line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from accel.diagnostics.errors import BadInput
from jobs.importers import recognition
from jobs.importers.kinds import KINDS
from tests.jobs.google_documents import DOCUMENTS, Document
from tests.jobs.imports.test_aws_batch import GIVEN
from tests.jobs.imports.test_golden import CASES, GOLDEN

MANIFEST = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"


@pytest.mark.parametrize("kind, file", sorted({case[:2] for case in CASES.values()}))
def test_documents_as_people_have_them(kind: str, file: str) -> None:
    assert recognition.recognize(file, (GOLDEN / file).read_bytes()).kind == kind


@pytest.mark.parametrize("each", [each for each in DOCUMENTS if not each.code], ids=lambda each: each.what)
def test_documents_that_look_right(each: Document) -> None:
    assert recognition.recognize("stdin", each.text.encode()).kind == each.kind


@pytest.mark.parametrize(
    "text, kind, by",
    [
        (json.dumps(GIVEN), "aws-batch", "arrayProperties, containerOverrides, jobDefinition"),
        ("jobName: a\njobQueue: q\njobDefinition: d\n", "aws-batch", "jobDefinition, jobQueue"),
        ('{"taskGroups": [], "labels": {}}', "google-batch", "taskGroups"),
        ("worker_pool_specs: []\n", "vertex", "worker_pool_specs"),
        ("scaleTier: BASIC\nregion: us-central1\n", "ai-platform", "scaleTier"),
        (MANIFEST, "kubernetes", "apiVersion, kind"),
        (f"{MANIFEST}---\n{MANIFEST}", "kubernetes", "apiVersion, kind"),
        ('{"apiVersion": "v1", "kind": "Pod"}', "kubernetes", "apiVersion, kind"),
        ("#!/bin/bash\n#SBATCH --gres=gpu:1\nsrun python a.py\n", "slurm", "its lines #SBATCH"),
        ("# once\n$ gcloud ai custom-jobs \\\n  create --region=x\n", "vertex", "`gcloud ai custom-jobs create`"),
        ("gcloud --project p ml-engine jobs submit training x\n", "ai-platform", "`ml-engine jobs submit training`"),
        ("gcloud beta batch jobs submit a --config -\n", "google-batch", "`beta batch jobs submit`"),
        ("ID=$(aws --region x batch submit-job --job-name a)\n", "aws-batch", "`--region x batch submit-job`"),
        (
            '{"jobDefinitionName": "a", "containerProperties": {}}',
            "aws-batch",
            "jobDefinitionName, containerProperties",
        ),
        ("resources:\n  accelerators: L4:1\nrun: python a.py\n", "skypilot", "run, resources.accelerators"),
        ("type: task\ncommands: [python a.py]\n", "dstack", "type: task"),
    ],
)
def test_what_it_was_known_by(text: str, kind: str, by: str) -> None:
    found = recognition.recognize("stdin", text.encode())
    assert found.kind == kind and found.text.endswith(by), found.text


@pytest.mark.parametrize(
    "text, message",
    [
        ("jobSpec: {}\ntrainingInput: {}\n", "may be vertex (by jobSpec) or ai-platform (by trainingInput); say which"),
        ("gcloud ai custom-jobs create\ngcloud ml jobs submit training x\n", "may be vertex (by `gcloud ai custom"),
        ("a: b\n", "is none of the kinds that are read, by its keys (a): aws-batch, a SubmitJob request"),
        ("{}", "is none of the kinds that are read, by its keys (no keys)"),
        ("run: {timeout: 5m}\nlinters: {}\n", "is none of the kinds that are read, by its keys (run, linters)"),
        ("type: service\ncommands: [python a.py]\n", "is a service that stays, and a job ends; accel has no services"),
        ("#!/bin/sh\n#PBS -l nodes=1\n", "is a PBS script, which is not read yet"),
        ("aws batch create-job-queue --priority 1\n", "is a resource of AWS Batch and no job (`aws batch create-job-"),
        ("AWSTemplateFormatVersion: '2010-09-09'\nResources: {A: {Type: !Ref X}}\n", "is a CloudFormation template"),
        ('{"StartAt": "a", "States": {}}', "is a state machine of Step Functions, which is not read yet; import"),
        ("#!/bin/bash\npython train.py\n", "is a script with no command that submits a job, which is not read yet"),
        ("gcloud ml-engine jobs submit prediction a\n", "is a batch prediction of AI Platform, which is not read yet"),
        ("gcloud storage ls\n", "is a command of gcloud that submits no job, which is not read yet"),
        ("trialJobSpec: {}\n", "is a HyperparameterTuningJob of Vertex AI, which is not read yet"),
        ('{"jobQueues": []}', "is a resource of AWS Batch and no job (jobQueues): `stacks adopt` takes it"),
        ("name: a\ncommand: [x]\n", "looks like a job file of accel itself"),
        ("- a\n", "must be a mapping of fields"),
        ("- name: a\n  shell: |\n    sbatch job.sh\n", "must be a mapping of fields"),
        ("", "stdin:1: is empty"),
        ("\0", "stdin:1: holds the control character"),
    ],
)  # fmt: skip
def test_what_is_none(home: Path, invoke: Callable[..., Result], text: str, message: str) -> None:
    done = invoke("import", "-", text=text)
    assert (done.exit_code, done.stdout) == (2, "") and message in done.stderr
    errors = [line for line in done.stderr.splitlines() if "is read as" not in line]
    assert len(errors) == 1 and len(done.stderr) < 600


@pytest.mark.parametrize("text", ['pip install a\nexport B="1\n2"\n', "python train.py\n", "cp a b\nname: y\n"])
def test_a_script_without_a_first_line_of_its_own_is_called_one(text: str) -> None:
    for name in ("train.sh", "train.slurm"):
        with pytest.raises(BadInput, match="is a script with no command that submits a job"):
            recognition.recognize(name, text.encode())
    assert recognition.recognize("job.sh", b"type: task\n").kind == "dstack"


SUBMIT = "aws batch submit-job --job-name n --job-queue q --job-definition d"
XPK = "workload create --workload n --cluster c --tpu-type v6e-8 --docker-image us-docker.pkg.dev/a/b/c:1 --command a"


@pytest.mark.parametrize(
    "line",
    [
        f"cd infra && {SUBMIT} || exit 1",
        f"set -x; {SUBMIT}",
        f"source env.sh && xpk {XPK}",
        f'[ -n "$DRY" ] || {SUBMIT}',
        f"for n in a b; do {SUBMIT}; done",
        f"submit() {{ {SUBMIT}; }}",
        f'if [ "$1" = "aws batch submit-job" ]; then {SUBMIT}; fi',
        f"echo 'a; b' && {SUBMIT} && echo done",
        f"nohup xpk {XPK} > log &",
        f"cd xpk && uv run xpk {XPK}",
        f"python3 -m xpk {XPK}",
        f"readonly ID=$({SUBMIT})",
    ],
)
def test_a_command_after_others_in_its_line(line: str, home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "-", text=f"{line}\n")
    assert done.exit_code == 0 and "name: n\n" in done.stdout, done.stderr


def test_a_command_with_others_before_it_and_a_text_of_several_lines(home: Path, invoke: Callable[..., Result]) -> None:
    text = XPK.removesuffix("a") + '"cd a && \\\ngcloud storage cp x y; aws s3 ls && python b.py"\n'
    done = invoke("import", "-", "-o", "json", text=f"gcloud config set project acme && xpk {text}")
    assert json.loads(done.stdout)["command"][-1] == "cd a && gcloud storage cp x y; aws s3 ls && python b.py"


def test_a_file_alone_is_the_same_as_with_its_kind(home: Path, invoke: Callable[..., Result]) -> None:
    Path("config.yaml").write_bytes((GOLDEN / "clusters.yaml").read_bytes())
    alone, named = invoke("import", "config.yaml"), invoke("import", "ai-platform", "config.yaml")
    first, _, rest = alone.stderr.partition("\n")
    assert first == "config.yaml: is read as ai-platform: a job of AI Platform Training, by trainingInput"
    assert (alone.exit_code, alone.stdout, rest) == (0, named.stdout, named.stderr)
    as_json = invoke("import", "config.yaml", "--report", "json")
    told = "\n".join(line for line in as_json.stderr.splitlines() if not line.startswith("submit it"))
    assert json.loads(told)["kind"] == "ai-platform"


def test_flags_follow_a_file_alone(home: Path, invoke: Callable[..., Result]) -> None:
    Path("config.yaml").write_bytes((GOLDEN / "clusters.yaml").read_bytes())
    done = invoke("import", "config.yaml", "--", "flowers_9")
    assert done.exit_code == 0 and "name: flowers_9" in done.stdout


@pytest.mark.parametrize(
    "words, code, message",
    [
        (("vertex",), 2, "FILE: is missing: accel-jobs import vertex FILE"),
        (("missing.yaml",), 6, "missing.yaml: no such file"),
        (("vertx",), 2, "vertx: is no kind of document and no file; did you mean vertex?"),
        (("pbs", "job.sh"), 2, "pbs: is no kind of document and no file; known: aws-batch, google-batch"),
        (("job.yaml", "vertex"), 2, "vertex: stands before the file: accel-jobs import vertex FILE"),
        (("job.yaml", "--image", "x"), 2, "job.yaml: is none of the kinds"),
        (("vertex", "missing.yaml"), 6, "missing.yaml: no such file"),
        ((".",), 2, ".: cannot be read: Is a directory"),
        (("",), 2, ""),
    ],
)  # fmt: skip
def test_wrong_words(
    home: Path, invoke: Callable[..., Result], words: tuple[str, ...], code: int, message: str
) -> None:
    Path("job.yaml").write_text("a: b\n")
    done = invoke("import", *words)
    assert done.exit_code == code and message in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["", *KINDS])
def test_a_file_without_end(home: Path, invoke: Callable[..., Result], kind: str) -> None:
    done = invoke("import", *([kind] if kind else []), "/dev/zero")
    assert (done.exit_code, done.stderr) == (2, "error: /dev/zero: is larger than 1 MiB\n")


@pytest.mark.parametrize("command", ["gcloud ai custom-jobs create", "gcloud ai-platform jobs submit training flowers"])
def test_a_config_without_end(home: Path, invoke: Callable[..., Result], command: str) -> None:
    Path("submit.sh").write_text(f"{command} --config=/dev/zero\n")
    done = invoke("import", "submit.sh")
    assert done.exit_code == 2 and done.stderr.splitlines()[1:] == ["error: /dev/zero: is larger than 1 MiB"]
