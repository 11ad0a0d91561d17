"""The Google part of `stacks budget`: the plan of the deployed function lists what it may stop."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from accel.budget.spending import Reading
from accel.clouds.google.rest import auth_headers
from accel.contract.budgets import Budget
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from components.gcp.budget_function import notices
from components.gcp.budget_function.cloud import CallError, Cloud, NotThere
from components.gcp.budget_function.handler import BUCKET
from components.gcp.budget_function.levers import levers
from components.gcp.budget_function.store import BucketStore

from .cloud_budgets import CloudBudgets


def cloud_budgets(promises: Mapping[str, Budget]) -> CloudBudgets | None:
    """Read from the function that stops the stack, with the caller's credentials. Raise JobsError."""
    name = next((each.function for each in promises.values() if each.function and each.stops_at is not None), None)
    if name is None:
        return None
    cloud = Cloud(sign=lambda: auth_headers()["Authorization"].removeprefix("Bearer "))
    try:
        function = cloud.call("GET", "cloudfunctions", f"v2/{name}")
        store = BucketStore(cloud, function["serviceConfig"]["environmentVariables"][BUCKET])
        plan = store.plan()
    except NotThere as gone:
        raise NotFound(f"{gone}", "it is made with the budget: pulumi up") from None
    except CallError as refused:
        raise (CloudRefused if refused.status else CloudSilent)(f"{refused}") from None

    def readings() -> Sequence[Reading]:
        """Return Google's last notices: it publishes them to topics, and has no API to ask."""
        known = notices.load(cloud, store.bucket)
        return [known[limit.budget].reading for limit in plan.limits if limit.budget in known]

    return CloudBudgets(
        cloud="google",
        store=store,
        limits=plan.limits,
        readings=readings,
        levers=lambda: levers(plan, cloud),
        # Errors of the levers name the request.
        asking=lambda doing: nullcontext(),
    )
