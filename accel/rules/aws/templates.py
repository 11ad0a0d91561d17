"""The launch template version of a compute environment."""

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

MOVING_VERSION = rule("aws.template.moving-version")


def version(name: str, version: str | None, field: str = "launch_template") -> list[Finding]:
    meant = version or "$Default"
    if meant not in ("$Latest", "$Default"):
        return []
    message = f"is {name} at {meant}, which AWS reads when it updates the instances and not when the template changes"
    return [MOVING_VERSION.finding(field, message, "name a version by its number")]
