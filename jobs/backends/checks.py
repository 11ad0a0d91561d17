"""Runner of a backend's check tables. Each check is a function that finds what the platform cannot honour of a job."""

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
    for check in of_job:
        check(draft, diagnostics)
    if choice is not None:
        for placed in of_choice:
            placed(draft, choice, diagnostics)
