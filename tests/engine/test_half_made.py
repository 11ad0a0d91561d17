"""A stack of which nothing, or not everything, was made can be destroyed by its program, which its hooks need."""

from pathlib import Path

from tests.support.engine import Sandbox
from tests.support.project import Stack, environment


def test_nothing_of_aws_was_made(tmp_path: Path, sandbox: Sandbox) -> None:
    Stack(tmp_path / "stack", sandbox, environment("sandbox"), stack="nothing").destroy()


def test_nothing_of_google_was_made(tmp_path: Path, google: Sandbox) -> None:
    Stack(tmp_path / "stack", google, environment("sandbox", cloud="gcp"), stack="nothing").destroy()
