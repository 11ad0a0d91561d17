"""A client as a process of its own, forked from a server that has imported everything. Its plan:

allowances  of the contract
platform    folder of the jobs
jobs        [key, USD] each: those that fit are submitted, one after the other
settle      true: settles what it can, as if an hour had passed
die_at      a step of holding.py or settling.py, at which the process kills itself
"""

import logging
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any
from uuid import uuid4

from accel.contract.allowances import Allowances
from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import OverLimit
from jobs.client.allowances.ledgers import address, ledger_at
from jobs.client.allowances.reservation import Ledger
from jobs.client.allowances.reserve import Holding
from jobs.client.allowances.settlement import settle_team
from tests.jobs.spend.books import TEAM, Late, Platform, wanted

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [__name__, "boto3", "jobs.client.allowances.dynamodb", "jobs.client.allowances.firestore", "pytest"]
)


class Client:
    """One that runs."""

    def __init__(self, allowances: Allowances, platform: Platform, **plan: Any) -> None:
        self._said = platform.folder.with_name(f"said-{uuid4().hex}")
        self._said.touch()
        whole = {"allowances": allowances.model_dump(mode="json", by_alias=True), "platform": platform.folder, **plan}
        self._process = _CONTEXT.Process(target=_main, args=(whole, dict(os.environ), self._said))
        self._process.start()

    def end(self, code: int = 0) -> list[str]:
        """What it said, once it has ended with that code."""
        self._process.join(120)
        assert self._process.exitcode == code
        return self._said.read_text().splitlines()


class _Dying(logging.Handler):
    """Kills the process at a step."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self._step = step

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def _main(plan: dict[str, Any], variables: dict[str, str], said: Path) -> None:
    os.environ.update(variables)
    log = logging.getLogger("accel.jobs.spend")
    log.setLevel(logging.DEBUG)
    log.addHandler(_Dying(plan.get("die_at", "")))
    allowances = Allowances.model_validate(plan["allowances"])
    ledger, platform = ledger_at(address(allowances)), Platform(plan["platform"])
    for key, usd in plan.get("jobs", []):
        try:
            with Holding(ledger, allowances, [wanted(key, usd)]) as holding:
                holding.send(platform, wanted(key, usd).request)
            line = f"made {key}"
        except OverLimit:
            line = f"refused {key}"
        with said.open("a") as file:
            file.write(f"{line}\n")
    if plan.get("settle"):
        late: Ledger = Late(ledger, 4000)  # pyright: ignore[reportAssignmentType]
        settle_team(late, TEAM, {"gpu": LocalTarget()}, backend_of=lambda ref: platform, find=platform.find)
