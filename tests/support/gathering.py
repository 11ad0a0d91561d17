"""Shell text by which processes wait for each other or for a test, however slowly each begins."""

from collections.abc import Sequence
from pathlib import Path


def until_there(path: Path | str) -> str:
    """Wait for a file. Its path may have variables of the shell."""
    return f'until [ -e "{path}" ]; do sleep 0.05; done'


def met(folder: Path, name: str, others: Sequence[str]) -> str:
    """Say in a folder that `name` is here, and wait for the others. Names may have variables of the shell."""
    return "; ".join([f'touch "{folder}/{name}"', *(until_there(f"{folder}/{other}") for other in others)])
