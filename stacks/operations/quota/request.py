"""Requests for higher quotas, written as a Pulumi program to read, keep and deploy apart from the environment."""

import math
import re
from collections.abc import Iterable, Sequence

from accel.quota import Verdict

_HEAD = '''"""Requests for higher quotas. Deploying them only asks: the cloud decides, for GPUs often after days."""

import pulumi
'''

_AWS = """
aws.servicequotas.ServiceQuota(
    {name!r},
    region={region!r},
    service_code="ec2",
    quota_code={code!r},  # {title}
    value={value},  # {why}
)
"""

_GOOGLE = """
gcp.cloudquota.SQuotaPreference(
    {name!r},
    parent=f"projects/{{PROJECT}}",
    service={service!r},
    quota_id={code!r},  # {title}
    dimensions={dimensions!r},
    quota_config=gcp.cloudquota.SQuotaPreferenceQuotaConfigArgs(preferred_value="{value}"),
    contact_email=CONTACT,
    justification={why!r},
)
"""

_SERVICES = {
    "compute": "compute.googleapis.com",
    "aiplatform": "aiplatform.googleapis.com",
    "tpu": "tpu.googleapis.com",
}

Stack = tuple[str | None, str | None, Sequence[Verdict]]
"""A stack's name, None for planned machines; the owner of the quotas ("account 123"); the verdicts."""


def program(stacks: Iterable[Stack]) -> str:
    """Return a program that requests each limit that is too small, at the total that the stack needs. A limit that is
    too small for two stacks is requested once, with the larger total; quotas without a known id become a comment."""
    wanted: dict[tuple[str, str], tuple[str | None, Verdict]] = {}
    owners: dict[str, None] = {}
    for stack, whose, verdicts in stacks:
        for row in (row for row in verdicts if row.word == "over" and row.need.quota):
            if whose:
                owners[whose] = None
            key = (row.need.label, row.need.region)
            if key not in wanted or value_of(row) > value_of(wanted[key][1]):
                wanted[key] = (stack, row)
    blocks = [_block(stack, row) for stack, row in wanted.values()]
    clouds = {row.need.quota.cloud for _, row in wanted.values() if row.need.quota}
    head = _HEAD if "gcp" in clouds else _HEAD.removesuffix("import pulumi\n")
    head += "import pulumi_aws as aws\n" if "aws" in clouds else ""
    if "gcp" in clouds:
        head += "import pulumi_gcp as gcp\n\n"
        head += 'PROJECT = pulumi.Config("gcp").require("project")\n'
        head += 'CONTACT = pulumi.Config("quotas").require("contact_email")\n'
    note = f"\n# For {', '.join(owners)}.\n" if owners else ""
    return head + note + "".join(blocks)


def value_of(row: Verdict) -> int:
    return math.ceil(row.need.amount if row.total is None else row.total)


def _block(stack: str | None, row: Verdict) -> str:
    need, quota = row.need, row.need.quota
    assert quota is not None
    kinds = ", ".join(f"{name} {amount:g}" for name, amount in need.by.items())
    what = f"stack {stack} can use" if stack else "planned machines use"
    why = f"{what} {need.amount:g} {quota.unit}s ({kinds}); the limit is {row.limit or 0:g}"
    values = {
        "name": re.sub(r"[^a-z0-9]+", "-", f"{quota.name} {need.region}".lower()).strip("-"),
        "region": need.region,
        "code": quota.quota_id,
        "title": quota.name,
        "value": value_of(row),
        "why": why,
    }
    if quota.cloud == "aws":
        return _AWS.format(**values)
    if not quota.quota_id:
        return f"\n# {quota.name}: {why}. Its id for Cloud Quotas is not known: ask in the console.\n"
    given = dict(part.split("=", 1) for part in quota.dimension.split(",") if part)
    dimensions = given if quota.scope == "global" else {quota.scope: need.region, **given}
    return _GOOGLE.format(**values, service=_SERVICES[quota.service], dimensions=dimensions)
