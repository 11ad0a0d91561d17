"""SkyPilot's optimizer as a peer: installed, given our prices, and asked."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accel.catalog import accelerators

from . import sky_catalog
from .measure import ROOT, run
from .peer import command
from .questions import Answer, Question, read_answers


class Sky:
    """SkyPilot in an environment and a home of its own, with our prices, and with no cloud that it could ask."""

    def __init__(self, scratch: Path) -> None:
        """Install it the first time. Raise Failed."""
        python = command("requirements-skypilot.txt", "sky").with_name("python")
        self._scratch, home = scratch, scratch / "home"
        sky_catalog.write(home)
        kept = f"HOME={home}", f"PATH={os.defpath}"
        offline = "SKYPILOT_DISABLE_USAGE_COLLECTION=1", "AWS_EC2_METADATA_DISABLED=true"
        # -P: the modules beside the driver must not stand in for others of the same name.
        self._driver = ("env", "-i", *kept, *offline, python, "-P", ROOT / "benchmarks" / "sky_driver.py")
        run((*self._driver, "prepare"))

    def ask(self, asked: Sequence[Question]) -> tuple[list[Answer], list[float]]:
        """Return its answers, and the mean milliseconds of one when first asked and when asked again."""
        run(self.command("all", asked, 2))
        return read_answers(self._scratch / "all-answers.json")

    def command(self, name: str, asked: Sequence[Question], rounds: int) -> Sequence[str | Path]:
        """Return the command that asks in a new process, so many times."""
        questions, answers = (self._scratch / f"{name}-{kind}.json" for kind in ("questions", "answers"))
        questions.write_text(json.dumps([resources(each) for each in asked]))
        return *self._driver, questions, answers, str(rounds)


def resources(question: Question) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "accelerators": {accelerators()[question.kind].skypilot_name: question.count},
        "use_spot": question.capacity == "spot",
        "region": question.region,
    }
    if question.cpus is not None:
        wanted["cpus"] = f"{question.cpus}+"
    if question.memory_gib is not None:
        wanted["memory"] = f"{question.memory_gib}+"
    return wanted
