"""Copies of a plan's resources that are weaker in one thing, to see that a scanner looks there."""

import copy
import json
from collections.abc import Iterator
from typing import Any

OPEN = {"10.": "0.0.0.0/0", "172.": "0.0.0.0/0", "192.168.": "0.0.0.0/0"}
"""How a private address begins, and what it becomes."""
WEAK: dict[str, Any] = {
    "role": "roles/owner",
    "member": "allUsers",
    "policy_arn": "arn:aws:iam::aws:policy/AdministratorAccess",
    "ip_protocol": "-1",
    "source_ranges": ["0.0.0.0/0"],
    "referenced_security_group_id": "",
    "access_config": [{}],
}
"""What is the weakest of some properties."""


def weakened(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan of every resource many times: each time with one value the other way round, or left out."""
    made: list[dict[str, Any]] = []
    for one in plan["planned_values"]["root_module"]["resources"]:
        for index, values in enumerate(_weaker(one["values"])):
            name = f"{one['name']}_{index}"
            made.append({**one, "name": name, "address": f"{one['type']}.{name}", "values": values})
    changes = [{**each, "change": {"actions": ["create"], "before": None, "after": each["values"]}} for each in made]
    return {**plan, "planned_values": {"root_module": {"resources": made}}, "resource_changes": changes}


def _weaker(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "security_group_id" in values:
        yield {**values, "cidr_ipv4": "0.0.0.0/0", "ip_protocol": "-1", "referenced_security_group_id": None}
    for path in _paths(values):
        weakest = [WEAK[path[-1]]] if path[-1] in WEAK else []
        for value in (*_other(_at(values, path)), *weakest):
            changed = copy.deepcopy(values)
            inside = _at(changed, path[:-1])
            if value is None and isinstance(inside, dict):
                del inside[path[-1]]
            else:
                inside[path[-1]] = value
            yield changed


def _paths(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from _paths(each, (*way, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _other(value: Any) -> Iterator[Any]:
    yield None
    match value:
        case bool():
            yield not value
        case int() | float():
            yield 0
        case "true" | "false" | "TRUE" | "FALSE":
            yield {"true": "false", "false": "true"}[value.lower()]
        case str() if address := next((OPEN[each] for each in OPEN if value.startswith(each)), None):
            yield address
        case str() if value.startswith('{"'):
            yield from _policies(value)
        case _:
            return


def _policies(text: str) -> Iterator[str]:
    """A policy that lets everybody in, and everything be done."""
    policy: dict[str, Any] = json.loads(text)
    if isinstance(statements := policy.get("Statement"), list):
        for weak in ({"Action": "*", "Resource": "*"}, {"Action": "*"}, {"Resource": "*"}, {"Principal": "*"}):
            changed = [{**{key: each[key] for key in each if key != "Condition"}, **weak} for each in statements]
            yield json.dumps({**policy, "Statement": changed})
