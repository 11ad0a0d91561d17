"""What `stacks budget` needs of a cloud: where the stop is remembered, what is spent, and the levers."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from accel.budget.levers import Lever
from accel.budget.spending import Limit, Reading
from accel.budget.state import Store


@dataclass(frozen=True)
class Part:
    """One cloud's part of a deployed stack. Its module is in PARTS and has `part(promises) -> Part | None`: None where
    no budget stops anything there. `promises`: accel.contract.budgets.Budget by the author's names."""

    cloud: str
    store: Store
    limits: Sequence[Limit]
    readings: Callable[[], Sequence[Reading]]
    """Asks the cloud what is spent; a budget that it says nothing of is left out."""
    levers: Callable[[], Sequence[Lever]]
    asking: Callable[[str], AbstractContextManager[None]]
    """Turns the cloud's errors into those of accel.diagnostics.errors, as the cloud's backends do."""


PARTS = {"budgets": "budget_aws", "gcp_budgets": "budget_google"}
"""Module by the output of the stack that it is told of."""
