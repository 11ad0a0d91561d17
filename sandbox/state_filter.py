"""A stack's exported state without the resources that one of the sandbox's clouds has forgotten, for `pulumi stack
import`.

    python -m sandbox.state_filter AWS|Google < before.json > after.json

A refresh would find AWS's resources gone. Google refuses it, as it does in a project whose APIs are not enabled.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

PROVIDERS: Mapping[str, tuple[str, ...]] = {"AWS": ("aws",), "Google": ("gcp", "kubernetes")}


def without(deployment: dict[str, Any], packages: tuple[str, ...]) -> dict[str, Any]:
    """Return an exported state without the packages' resources, and without mentions of them."""
    inner = deployment["deployment"]
    resources: list[dict[str, Any]] = inner.get("resources") or []
    lost = {each["urn"] for each in resources if each.get("custom") and str(each["type"]).partition(":")[0] in packages}

    def rest(urns: list[str]) -> list[str]:
        return [urn for urn in urns if urn not in lost]

    left: list[dict[str, Any]] = []
    for each in resources:
        if each["urn"] in lost:
            continue
        mentions: dict[str, Any] = {}
        if "dependencies" in each:
            mentions["dependencies"] = rest(each["dependencies"])
        if "propertyDependencies" in each:
            mentions["propertyDependencies"] = {
                name: rest(urns or []) for name, urns in each["propertyDependencies"].items()
            }
        left.append(
            {name: value for name, value in (each | mentions).items() if name != "deletedWith" or value not in lost}
        )
    operations = [each for each in inner.get("pending_operations") or [] if each["resource"]["urn"] not in lost]
    return {**deployment, "deployment": {**inner, "resources": left, "pending_operations": operations}}


if __name__ == "__main__":
    json.dump(without(json.load(sys.stdin), PROVIDERS[sys.argv[1]]), sys.stdout)
