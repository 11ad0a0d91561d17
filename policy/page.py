"""Writes docs/policy.md."""

from .guard import Policy, StackPolicy
from .table import POLICIES

HEAD = """\
# Policies

Guards over what a stack is to be, whoever wrote it: the house's own components pass them. What the clouds themselves
refuse is in [rules.md](rules.md), and is refused before.

```sh not-run
pulumi preview --policy-pack policy --policy-pack-config policy/dev.json
pulumi up --policy-pack policy --policy-pack-config policy/prod.json
```

Without a config file every policy is advisory, and those with a maximum count nothing. `policy/dev.json` keeps them
advisory and sets maxima; `policy/prod.json` makes them mandatory, so that the preview fails; copy one and change it. A
config gives each policy an `enforcementLevel` (`advisory`, `mandatory`, `disabled`), `all` of them at once, and their
settings. A preview does not know every value: a policy that asks for one that is not known is not applicable then, and
is asked again by `pulumi up` before the resource is made. Policies over the whole stack are asked when a preview or an
update ends, so let a preview refuse. Secrets are never looked at.

The same without the engine, over a preview or a state that is there already, as JSON too:

```sh not-run
pulumi preview --json --show-sames > preview.json
python -m policy check preview.json --config policy/prod.json
pulumi stack export | python -m policy check --config policy/prod.json -o json
```

Exit code 5 says that a mandatory policy does not hold. `--show-sames` matters: a preview names only what changes
otherwise, and neither the maxima nor the labels of a provider can be told then.

Counted as machines are compute environments, node pools, VMs, the stack's own VM groups, TPU VMs and queued TPUs, and
persistent resources; a reservation is counted where it is used. Prices are those of the catalogue. A Spot pool counts
at its price on demand.

The policies take milliseconds over hundreds of resources. That the engine asks a pack about each resource, whatever the
answer, costs some seconds for 500 of them (`python -m benchmarks policy` measures both); the command above does not.

`make audit` has [Checkov](https://www.checkov.io/) look at what the environments and components of this project make,
as if Terraform had planned it. What it objects to and we keep is in `tests/audit/skipped.yaml`, with the reason.

This page is written by `python -m policy page > docs/policy.md`.

| policy | severity | what it says | fix | settings | also known as |
| --- | --- | --- | --- | --- | --- |
"""


def _settings(policy: Policy) -> str:
    said: list[str] = []
    for key, schema in policy.settings.items():
        default = schema.get("default")
        shown = ", ".join(default) if isinstance(default, list) else default  # pyright: ignore
        said.append(f"`{key}`: {schema['description']}" + ("" if default is None else f" (`{shown}`)"))
    return "; ".join(said)


def page() -> str:
    """The page, as Markdown. "Also known as" are ids of Checkov."""
    rows = [
        f"| [`{policy.id}`]({policy.source})"
        f"{' (stack)' if isinstance(policy, StackPolicy) else ''} | {policy.severity} | {policy.summary} "
        f"| {policy.fix} | {_settings(policy)} | {', '.join(policy.also)} |"
        for policy in POLICIES.values()
    ]
    return HEAD + "\n".join(rows) + "\n"
