"""How the targets of a stack lie in SSM parameters, and how a reader puts them together again.

<path>/<target>                     a target as JSON
<path>/definitions/<definition>     where a target would be too large: its definitions, each as JSON, and the target
                                    itself has no `definitions`
"""

from collections.abc import Mapping
from typing import Any

from . import buckets

SOURCE = "published"
"""Field of an exported target: where the stack publishes it. What lies there has no such field."""
FOLDER = "definitions"
"""Below the path of the targets. No target is called so with a slash behind it."""


def add_source(target: Mapping[str, Any], ssm_path: str) -> dict[str, Any]:
    """A target with its source, as `--targets` takes it; that of AWS lies below the path."""
    match target["kind"]:
        case "aws-batch":
            source = f"ssm:{target['region']}{ssm_path}"
        case "gke":
            source = "configmap:{project}/{location}/{cluster}/{namespace}".format_map(target)
        case _:
            source = f"gs://{target['bucket']}/{buckets.TARGETS}"
    return {**target, SOURCE: source}


def without_definitions(target: Mapping[str, Any]) -> dict[str, Any]:
    """A target whose definitions lie in parameters of their own."""
    return {name: value for name, value in target.items() if name != FOLDER}


def whole(documents: Mapping[str, Any]) -> dict[str, Any]:
    """Targets by name, of everything that lies below their path."""
    below = f"{FOLDER}/"
    definitions = {name.removeprefix(below): each for name, each in documents.items() if name.startswith(below)}
    targets = {name: each for name, each in documents.items() if not name.startswith(below)}
    if not definitions:
        return targets
    return {name: {FOLDER: definitions, **each} if isinstance(each, dict) else each for name, each in targets.items()}
