"""README and the tutorial as pasted into a terminal, in a folder that has nothing but what git has of this project.

What a reader replaces is replaced here too, and nothing else: the bucket of the state, the image of the job, REF.
`make test` runs the same commands one page after the other, on a sandbox that stands: test_docs.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.environment import project
from tests.support.clone import Clone, cloned, environment_of_its_own
from tests.support.pages import Block, blocks, script_of, unlike
from tests.support.shown import kind_of
from tests.support.soak import soak_only

pytestmark = soak_only
README, TUTORIAL = project() / "README.md", project() / "docs" / "tutorial.md"
STATE = "s3://my-state?region=us-east-1"
BUCKET = "import boto3; boto3.client('s3', region_name='us-east-1').create_bucket(Bucket='my-state')"
EDITOR = """#!/bin/sh
# Writes README's environment over what is there, and keeps the salt that Pulumi has written.
kept=$(grep '^encryptionsalt:' "$1" || true)
cp "$README_ENVIRONMENT" "$1" && printf '%s\\n' "$kept" >> "$1"
"""


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    found = cloned(tmp_path / "accel")
    environment_of_its_own(found.folder)
    yield Clone(found.folder, {**found.variables, "PULUMI_SKIP_CONFIRMATIONS": "true"})
    found.run(".venv/bin/sandbox stop --wipe")


def of(page: Path, *, after: str, until: str = "") -> list[Block]:
    """The blocks of a page between two headings."""
    lines = page.read_text().splitlines()
    first, last = lines.index(after), lines.index(until) if until else len(lines)
    return [block for block in blocks(page) if first < block.line <= last]


def shell(parts: list[Block]) -> list[Block]:
    return [block for block in parts if block.language in ("sh", "console")]


def reader(text: str) -> str:
    """A block with the reader's own image, which has the example's program."""
    return text.replace("my.registry/train:1.4", "local/examples")


def test_readme_as_pasted(clone: Clone, tmp_path: Path) -> None:
    (environment,) = [block for block in blocks(README) if block.language == "yaml" and kind_of(block) == "environment"]
    (job,) = [block for block in blocks(README) if block.language == "yaml" and kind_of(block) == "job"]
    (tmp_path / "editor").write_text(EDITOR)
    (tmp_path / "editor").chmod(0o755)
    (tmp_path / "environment.yaml").write_text(reader(environment.text))
    (clone.folder / "job.yaml").write_text(reader(job.text))

    tried, _ = script_of(shell(of(README, after="## Try it, without any cloud account", until="## Deploy for real")))
    tried = tried.replace("make test\n", "")  # which this is a part of
    deployed, _ = script_of(shell(of(README, after="## Deploy for real", until="## Run jobs")))
    assert STATE in deployed and "install" in deployed
    ran, _ = script_of(
        shell(of(README, after="## Run jobs", until="## Know before anything is created")),
        {"REF": '"$(accel-jobs submit job.yaml --to gpu --key run-17 -o id 2>/dev/null)"'},
    )
    (program,) = [block for block in of(README, after="## Run jobs") if block.language == "python"]
    script = "\n".join(
        (
            tried,
            f'.venv/bin/python -c "{BUCKET}"',
            deployed.replace(STATE, f"{STATE}&s3ForcePathStyle=true"),  # the sandbox's S3 has no name for each bucket
            ran,
            f"python - <<'PROGRAM'\n{program.text}PROGRAM",
            "pulumi destroy --stack dev --run-program",
        )
    )
    assert "pulumi destroy --stack dev --run-program" in README.read_text()
    printed = clone.run(script, EDITOR=str(tmp_path / "editor"), README_ENVIRONMENT=str(tmp_path / "environment.yaml"))
    assert "epoch 20/20" in printed and "succeeded" in printed, printed
    assert clone.run("make down") is not None


def test_the_tutorial_as_pasted(clone: Clone) -> None:
    script, wanted = script_of(shell(blocks(TUTORIAL)))
    printed = clone.run(f"{script}\nmake down > /dev/null 2>&1")
    assert unlike(wanted, printed) == ""
