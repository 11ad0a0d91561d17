"""Documents that a page shows as a heredoc to paste into a shell, without a command that is read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from jobs.importers.heredoc_documents import document_in

JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: digits}\nspec:\n  backoffLimit: 0\n  template:\n    spec:\n"
    "      restartPolicy: Never\n      containers:\n      - name: train\n        image: registry.example/train:1\n"
    "        command: [python3, train.py]\n        resources: {limits: {nvidia.com/gpu: 1}}\n"
)
CONFIG = (
    "trainingInput:\n  region: us-central1\n  scaleTier: BASIC\n"
    "  masterConfig: {imageUri: us-docker.pkg.dev/acme/a/b:1}\n"
)
TASK = "type: task\nname: digits\nimage: registry.example/train:1\ncommands: [python3 train.py]\n"


@pytest.mark.parametrize(
    "text, kind",
    [
        (f"kubectl apply -f - <<EOF\n{JOB}EOF\n", "kubernetes"),
        (f"$ kubectl create -f - <<'EOF'\n{JOB}EOF\njob.batch/digits created\n", "kubernetes"),
        (f"cat <<EOF | kubectl apply -f -\n{JOB}EOF\n", "kubernetes"),
        (f"cat > job.yaml <<EOF\n{JOB}EOF\nkubectl apply -f job.yaml\n", "kubernetes"),
        (f'#!/bin/bash\nset -e\n# makes it\nNS=a\ncat << "EOF" > job.yaml\n{JOB}EOF\n', "kubernetes"),
        (f"cat > config.yaml <<EOF\n# made here\n---\n{CONFIG}EOF\n", "ai-platform"),
        (f"tee .dstack.yml <<EOF\n{TASK}EOF\n", "dstack"),
        (f"%%writefile config.yaml\n{CONFIG}", "ai-platform"),
        (f"%%writefile job.yaml\n{JOB}", "kubernetes"),
    ],
)
def test_forms(text: str, kind: str, home: Path, invoke: Callable[..., Result]) -> None:
    for words in ((), (kind,)):
        done = invoke("import", *words, "-", text=text)
        assert done.exit_code == 0, done.stderr
    assert f"is read as {kind}" in invoke("import", "-", text=text).stderr


def test_a_fault_names_its_line(home: Path, invoke: Callable[..., Result]) -> None:
    text = f"# a page's\nkubectl apply -f - <<EOF\n{JOB}  frobnicate: 1\nEOF\n"
    done = invoke("import", "-", text=text)
    assert done.exit_code == 2 and "stdin:16: refused: spec.frobnicate" in done.stderr, done.stderr
    done = invoke("import", "kubernetes", "-", text=text.replace("backoffLimit: 0", "backoffLimit: [0"))
    assert done.exit_code == 2 and done.stderr.startswith("error: stdin:"), done.stderr


def test_variables() -> None:
    assert document_in("A=1\ncat > a <<EOF\nx: $A ${A} $B \\$A\nEOF\n") == "\n\nx: 1 1 $B $A\n"
    assert document_in("A=1\ncat > a <<'EOF'\nx: $A\nEOF\n") == "\n\nx: $A\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: b\n",
        "run: |\n  cat <<EOF\n  a\n  EOF\n",
        "cat <<EOF\nno end\n",
        "cat <<EOF\na: b\nEOF\ncat <<EOF\nc: d\nEOF\n",
        "python train.py <<EOF\na: b\nEOF\n",
        "cat > a.yaml <<EOF\na: b\nEOF\nsky launch a.yaml --gpus A100\n",
        '{"a": "cat <<EOF"}',
    ],
)
def test_what_is_no_document(text: str) -> None:
    assert document_in(text) is None
