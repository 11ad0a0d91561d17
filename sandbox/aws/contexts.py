"""What a call brings into the conditions of a policy: its own keys, and those of the resource that it acts on.

Keys are in lower case. Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html,
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
"""

from collections.abc import Iterator
from typing import Any

import jmespath

from .calls import Call

CONTAINERS = "[containerProperties, nodeProperties.nodeRangeProperties[].container][]"
"""Of a job definition. A field that it leaves out brings no key."""


def of_request(call: Call, account: str) -> Iterator[tuple[str, str]]:
    """The keys of the request, whatever it acts on."""
    yield "aws:requestedregion", call.region
    given = dict(call.parameters)
    if call.service == "batch":
        yield from ((f"aws:requesttag/{name}".lower(), value) for name, value in (given.get("tags") or {}).items())
        containers: list[Any] = jmespath.search(CONTAINERS, given) or []
        if said := [each["privileged"] for each in containers if each and "privileged" in each]:
            yield "batch:privileged", str(any(said)).lower()
    if call.service == "dynamodb" and (row := given.get("Key") or given.get("Item")):
        from moto.dynamodb.models import dynamodb_backends

        table: Any = dynamodb_backends[account][call.region].tables.get(given["TableName"])
        if table:
            yield "dynamodb:leadingkeys", str(next(iter(row.get(table.hash_key_attr, {}).values()), ""))


def of_resource(call: Call, account: str, resource: str) -> Iterator[tuple[str, str]]:
    """The tags of a job. Tasks have none of their own:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_TagResource.html"""
    if call.service == "batch" and ":job/" in resource:
        from moto.batch.models import batch_backends

        found: dict[str, str] = batch_backends[account][call.region].list_tags_for_resource(resource)
        yield from ((f"aws:resourcetag/{name}".lower(), value) for name, value in found.items())
