"""Run a backend's tables of checks: what its platform cannot honour of a job, each check a function of its own."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from accel.diagnostics.collector import Diagnostics

DraftT = TypeVar("DraftT")
ChoiceT = TypeVar("ChoiceT")


def run_checks(
    of_job: Iterable[Callable[[DraftT, Diagnostics], None]],
    of_choice: Iterable[Callable[[DraftT, ChoiceT, Diagnostics], None]],
    draft: DraftT,
    choice: ChoiceT | None,
    diagnostics: Diagnostics,
) -> None:
    """Run the checks of every job, then those of what was chosen for it, where something was."""
    for check in of_job:
        check(draft, diagnostics)
    if choice is not None:
        for placed in of_choice:
            placed(draft, choice, diagnostics)
