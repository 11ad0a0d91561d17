"""Layout of a stack's targets in SSM parameters, and its reader.

<path>/<target>                     a target as JSON
<path>/definitions/<definition>     for a target that would be too large: each of its definitions as JSON; the target
                                    itself then has no `definitions`
"""

from collections.abc import Mapping
from typing import Any

from . import buckets

SOURCE = "published"
"""Field of an exported target: where the stack publishes it. The published copy has no such field."""
FOLDER = "definitions"
"""Folder below the path of the targets. No target has this name followed by a slash."""


def add_source(target: Mapping[str, Any], ssm_path: str) -> dict[str, Any]:
    """Add where it is published, in the form of `--targets`. An AWS target's source is below the path."""
    match target["kind"]:
        case "aws-batch":
            source = f"ssm:{target['region']}{ssm_path}"
        case "gke":
            source = "configmap:{project}/{location}/{cluster}/{namespace}".format_map(target)
        case _:
            source = f"gs://{target['bucket']}/{buckets.TARGETS}"
    return {**target, SOURCE: source}


def without_definitions(target: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the definitions, which have parameters of their own."""
    return {name: value for name, value in target.items() if name != FOLDER}


def whole(documents: Mapping[str, Any]) -> dict[str, Any]:
    """Assemble the targets by name from all documents below their path."""
    below = f"{FOLDER}/"
    definitions = {name.removeprefix(below): each for name, each in documents.items() if name.startswith(below)}
    targets = {name: each for name, each in documents.items() if not name.startswith(below)}
    if not definitions:
        return targets
    return {name: {FOLDER: definitions, **each} if isinstance(each, dict) else each for name, each in targets.items()}
