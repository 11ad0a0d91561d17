"""An object with the resources that a budget's function may stop; the function reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from ..base import Component, Spec, join, once
from ..sdk import gcp
from .budget_function.plan import PLAN


class BudgetPlanSpec(Spec):
    """An empty spec: the object's location is fixed."""

    object: str = PLAN


@dataclass(frozen=True, kw_only=True)
class BudgetPlanArgs:
    """The spec, the bucket of the stop, and the plan as text; buckets with records of jobs, by a name for each, and the
    function's account, which needs write access there."""

    spec: BudgetPlanSpec
    bucket: pulumi.Input[str]
    text: pulumi.Input[str]
    buckets: Mapping[str, pulumi.Input[str]]
    member: pulumi.Input[str]


class BudgetPlan(Component):
    """The resources that the function may stop; it reads this object with every message."""

    TYPE = "accel:gcp:BudgetPlan"

    source: pulumi.Output[str]

    def __init__(self, name: str, args: BudgetPlanArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        granted = [writes(self, f"{name}-{key}", bucket, args.member) for key, bucket in args.buckets.items()]
        made = gcp.storage.BucketObject(
            name,
            bucket=args.bucket,
            name=args.spec.object,
            content=args.text,
            content_type="application/json",
            opts=self.child(depends_on=granted),
        )
        self.source = once(join("gs://", args.bucket, "/", made.name), made.id)
        self.finish()


def writes(
    self: Component, name: str, bucket: pulumi.Input[str], member: pulumi.Input[str]
) -> gcp.storage.BucketIAMMember:
    return gcp.storage.BucketIAMMember(
        name, bucket=bucket, role="roles/storage.objectUser", member=member, opts=self.child()
    )
