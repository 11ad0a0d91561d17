"""Plan of a stop: what a budget stops in a stack. The stack writes it; the function and `stacks budget` read it.

It is in the bucket of the stop, next to the state. New versions only add fields.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from accel.budget.spending import Limit

FOLDER = "accel-budget"
PLAN, STOP = f"{FOLDER}/plan.json", f"{FOLDER}/stop.json"
"""Objects of the bucket. Clients read the stop before they submit; accel.contract.stop has its fields."""


@dataclass(frozen=True)
class PlannedCluster:
    """Cluster with its pools of accelerators by the author's key, and with Kueue's ClusterQueues."""

    path: str
    """projects/<p>/locations/<l>/clusters/<c>"""
    endpoint: str
    ca_certificate: str
    pools: dict[str, str]
    queues: list[str]


@dataclass(frozen=True)
class PlannedBudget:
    """Budget of the section, with the line at which it stops the stack, if it does."""

    key: str
    id: str
    """Google's own id, which messages have."""
    display_name: str
    chat_secret: str | None = None
    """projects/<p>/secrets/<s>, whose value is the URL of a Google Chat webhook."""
    at: float | None = None
    basis: str = "actual"
    running_after_s: int | None = None

    @property
    def limit(self) -> Limit | None:
        return None if self.at is None else Limit(self.key, self.at, self.basis, self.running_after_s)


@dataclass(frozen=True)
class Plan:
    """Everything that a budget stops in one stack. `labels` are those of its jobs; `buckets` have the records of jobs
    on machines of their own; `batch` and `vertex` are regions; `tpu_queues` are
    projects/<p>/locations/<z>/queuedResources/<q>."""

    project: str
    labels: dict[str, str]
    budgets: list[PlannedBudget]
    clusters: list[PlannedCluster] = field(default_factory=list[PlannedCluster])
    buckets: list[str] = field(default_factory=list[str])
    batch: list[str] = field(default_factory=list[str])
    vertex: list[str] = field(default_factory=list[str])
    tpu_queues: list[str] = field(default_factory=list[str])
    schema: int = 1

    @property
    def limits(self) -> list[Limit]:
        return [each.limit for each in self.budgets if each.limit]


def to_json(plan: Plan) -> str:
    """Return the plan as text."""
    return json.dumps(asdict(plan), sort_keys=True)


def of_json(text: str | bytes) -> Plan:
    """Parse a plan, which another version may have written. Unknown fields are ignored."""
    found = _known(Plan, json.loads(text))
    for name, kind in (("budgets", PlannedBudget), ("clusters", PlannedCluster)):
        found[name] = [kind(**_known(kind, each)) for each in found.get(name, [])]
    return Plan(**found)


def _known(kind: Any, document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name in kind.__dataclass_fields__}
