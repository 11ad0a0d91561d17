"""Every policy. It is a module of its own, so that code that needs one topic does not load them all."""

from .guard import Policy
from .rules import identity, keeping, machines, money, reach

POLICIES: dict[str, Policy] = {
    policy.id: policy for topic in (money, reach, identity, machines, keeping) for policy in topic.POLICIES
}
"""Every policy by its id. docs/policy.md is this table: `python -m policy page > docs/policy.md`."""
