"""Commands, and what the image that they run in names as its own."""

from collections.abc import Sequence

from accel.rules import Finding
from accel.rules.jobs.entry_points import Image, command

from .case import Case

PYTHON = Image(("python3",), ("train.py",))


def _judged(words: Sequence[str], image: Image = PYTHON, *, swept: bool = False) -> list[Finding]:
    return command(image, words, replaced=False, swept=swept)


CASES = [
    Case(
        "container.command.none", "command", ("neither ENTRYPOINT nor CMD",), "write what the container is to run",
        lambda: _judged([], Image()), lambda: _judged([]),
    ),
    Case(
        "container.entry-point.twice", "command", ("begins with python", "entry point, python3"), "leave python out",
        lambda: _judged(["python", "train.py"]), lambda: _judged(["train.py"]),
    ),
    Case(
        "container.entry-point.shell", "command", ("/bin/sh of the sweep",), "sweep.shell: false",
        lambda: _judged(["t.py"], swept=True), lambda: _judged(["t.py"], Image(("/opt/nvidia/entry.sh",)), swept=True),
    ),
]  # fmt: skip
