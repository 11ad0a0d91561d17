"""What a run in memory registered, as policies see it."""

import json
import re

from policy.resource import Resource, plain

from . import memory

MADE_UP = re.compile(r"arn:aws:iam/role:Role:")
"""How the engine in memory begins the ARN of a role."""


def seen(recorder: memory.Recorder) -> list[Resource]:
    """What a run registered, as a policy sees it, with ARNs of roles as AWS writes them."""
    inputs = {
        one.urn: plain(json.loads(MADE_UP.sub("arn:aws:iam::111122223333:role/", json.dumps(one.inputs, default=repr))))
        for one in recorder.registrations
    }
    return [
        Resource(
            type=one.type,
            name=one.name,
            urn=one.urn,
            properties=inputs[one.urn],
            protect=one.protect,
            retained=one.retain_on_delete,
            provider=inputs.get(one.provider.rpartition("::")[0]),
        )
        for one in recorder.registrations
        if not one.type.startswith("pulumi:")
    ]
