"""The budgets of a deployed stack by cloud: the record of a stop, the spending, and the levers."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from accel.budget.acting import Busy, Outcome
from accel.budget.acting import resume as resume_levers
from accel.budget.levers import Lever, LeverError
from accel.budget.spending import Limit, Reading
from accel.budget.state import State, StateConflict, Store
from accel.contract.budgets import Budget
from accel.diagnostics.errors import CloudRefused, NotFound

from ..stack_files import stack_outputs

TRIES, PAUSE_S = 5, 1.0
"""Tries of a resume while the function is at work, and the pause between them."""
CLOUDS = {"budgets": "aws", "gcp_budgets": "google"}
"""Modules by the output of the stack that they read. Each has `cloud_budgets(promises) -> CloudBudgets | None`: None
where no budget stops anything there. `promises`: accel.contract.budgets.Budget by the author's names."""


@dataclass(frozen=True)
class CloudBudgets:
    """The budgets of one cloud that stop a deployed stack."""

    cloud: str
    store: Store
    limits: Sequence[Limit]
    readings: Callable[[], Sequence[Reading]]
    """Returns the spending from the cloud; omits a budget for which the cloud has no reading."""
    levers: Callable[[], Sequence[Lever]]
    asking: Callable[[str], AbstractContextManager[None]]
    """Converts the cloud's errors to those of accel.diagnostics.errors, as the cloud's backends do."""

    @contextmanager
    def errors(self) -> Generator[None]:
        try:
            yield
        except LeverError as failed:
            if failed.__cause__:
                with self.asking(f"budgets of {self.cloud}"):
                    raise failed.__cause__ from None
            raise CloudRefused(str(failed)) from failed

    def spending(self) -> list[dict[str, Any]]:
        limits = {limit.budget: limit for limit in self.limits}
        rows: list[dict[str, Any]] = []
        for reading in self.readings():
            limit = limits[reading.budget]
            spent = reading.spent(limit.basis)
            rows.append(
                {
                    "budget": reading.budget,
                    "cloud": self.cloud,
                    "spent": "unknown" if spent is None else f"{spent:,.2f} {reading.currency}",
                    "basis": limit.basis,
                    "line": f"{limit.at * reading.amount:,.2f} {reading.currency}",
                    "period": reading.period,
                }
            )
        return rows

    def state_lines(self, state: State) -> Iterator[str]:
        if state.stopped is None:
            yield f"{self.cloud}: accepts new jobs"
            return
        since = datetime.fromtimestamp(state.since or 0, UTC).isoformat(timespec="seconds")
        yield f"{self.cloud}: stopped since {since}: {state.stopped}"
        yield from (f"  {change.text}" for change in state.changes)
        yield from (f"  failed, and tried again: {each}" for each in state.failures)
        if state.running_at is not None and "running" not in {change.stage for change in state.changes}:
            at = datetime.fromtimestamp(state.running_at, UTC).isoformat(timespec="seconds")
            yield f"  running work is stopped at {at}"
        yield "  `stacks budget resume` undoes it"

    def resume(self) -> Outcome:
        """Undo a stop, once the function that stops the stack is not at work."""
        for left in reversed(range(TRIES)):
            try:
                return resume_levers(self.levers(), self.store, time.time())
            except (Busy, StateConflict) as error:
                if not left:
                    raise CloudRefused(
                        str(error), "the function that stops the stack is at work; run it again"
                    ) from None
            time.sleep(PAUSE_S)
        raise AssertionError


def stack_budgets(stack: str | None) -> list[CloudBudgets]:
    """Raise NotFound where no budget stops the stack."""
    outputs = stack_outputs(stack)
    budgets: list[CloudBudgets] = []
    for output, module in CLOUDS.items():
        if outputs.get(output):
            promises = {name: Budget.model_validate(each, extra="ignore") for name, each in outputs[output].items()}
            of_cloud = import_module(f".{module}", __package__).cloud_budgets(promises)
            budgets += [of_cloud] if of_cloud else []
    if not budgets:
        raise NotFound(
            f"stack {stack or 'selected'} has no budget that stops it", "give one a `stop`, and deploy: pulumi up"
        )
    return budgets
