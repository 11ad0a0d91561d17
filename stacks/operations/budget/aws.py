"""The AWS part of `stacks budget`: the deployed function's settings list what it may stop."""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from accel.budget.spending import Limit
from accel.clouds.aws.errors import asking
from accel.contract.budgets import Budget
from components.aws.budget_function import SETTINGS, Settings, TableStore, levers, read

from .cloud_budgets import CloudBudgets


def cloud_budgets(promises: Mapping[str, Budget]) -> CloudBudgets | None:
    """Read from the function that stops the stack. Raise the errors of accel.diagnostics.errors."""
    acting = next((each for each in promises.values() if each.function and each.region), None)
    if acting is None:
        return None
    sdk: Any = import_module("boto3")
    with asking(f"function {acting.function}"):
        client = sdk.client("lambda", region_name=acting.region)
        found = client.get_function_configuration(FunctionName=acting.function)
    settings = Settings(**json.loads(found["Environment"]["Variables"][SETTINGS]))
    return CloudBudgets(
        cloud="aws",
        store=TableStore(sdk.client("dynamodb", region_name=settings.region), settings.table),
        limits=[Limit(**fields) for fields in settings.budgets.values()],
        # The only region with the service's API; without it boto3 would look for a region in vain.
        readings=lambda: [
            read(sdk.client("budgets", region_name="us-east-1"), settings, name) for name in settings.budgets
        ],
        levers=lambda: levers(sdk, settings, most=None),
        asking=asking,
    )
