"""Shell text by which processes wait for each other, however slowly each begins."""

from collections.abc import Sequence
from pathlib import Path


def met(folder: Path, name: str, others: Sequence[str]) -> str:
    """Say in a folder that `name` is here, and wait for the others. Names may have variables of the shell."""
    waits = [f'until [ -e "{folder}/{other}" ]; do sleep 0.05; done' for other in others]
    return "; ".join([f'touch "{folder}/{name}"', *waits])
