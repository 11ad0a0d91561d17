"""Did you mean: single typos of fields, options, verbs and targets find what was meant."""

from __future__ import annotations

import random
import string

import click
import pytest

from accel.diagnostics.messages import did_you_mean
from jobs.cli.main import VERBS, jobs
from jobs.model.job import Job

TARGETS = ["gpu", "gpu-spot", "h100-reserved", "a10g-ondemand", "cpu", "tpu-v5e", "local", "nightly-batch"]


def options() -> list[str]:
    context = click.Context(jobs)
    commands = [jobs.get_command(context, verb) for verb in VERBS]
    found = {name for command in commands if command for param in command.params for name in param.opts}
    return sorted(name for name in found if name.startswith("--"))


def typo(word: str, rng: random.Random) -> str:
    at = rng.randrange(2 if word.startswith("--") else 0, len(word))
    letter = rng.choice(string.ascii_lowercase)
    return rng.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
        ]
    )


@pytest.mark.parametrize(
    "known",
    [list(Job.model_fields), options(), list(VERBS), TARGETS],
    ids=["fields", "options", "verbs", "targets"],
)
def test_nine_of_ten_typos_find_what_was_meant(known: list[str]) -> None:
    rng = random.Random(7)
    cases = [(word, wrong) for word in rng.choices(known, k=200) if (wrong := typo(word, rng)) not in known][:100]
    found = sum(
        word in did_you_mean(wrong, known).rstrip("?").split("mean ")[-1].split(" or ") for word, wrong in cases
    )
    assert len(cases) == 100
    assert found >= 90
