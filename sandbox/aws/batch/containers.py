"""Container properties: what a definition must contain, and what a job overrides."""

from .instances import Needs
from .state import BatchError, Document, require

LISTS = ("command", "environment", "mountPoints", "resourceRequirements", "secrets", "ulimits", "volumes")


def needs(container: Document) -> Needs:
    """Read resourceRequirements, or the older vcpus and memory."""
    asked = {row["type"]: row["value"] for row in container.get("resourceRequirements", [])}
    vcpus, memory = asked.get("VCPU", container.get("vcpus")), asked.get("MEMORY", container.get("memory"))
    require(vcpus is not None and memory is not None, "Container properties must contain VCPU and MEMORY")
    try:
        found = Needs(float(vcpus), int(memory), int(asked.get("GPU", 0)))  # pyright: ignore[reportArgumentType]
    except ValueError as error:
        raise BatchError(f"resourceRequirements: {error}") from error
    require(found.vcpus > 0, f"VCPU {vcpus} must be greater than 0")
    require(found.memory_mib >= 4, f"MEMORY {memory} must be at least 4")
    require(found.gpus >= 1 or "GPU" not in asked, f"GPU {asked.get('GPU')} must be at least 1")
    return found


def complete(container: Document) -> Document:
    """Return the container as Batch keeps it."""
    require("image" in container, "Container properties must contain image")
    needs(container)
    found = {key: [] for key in LISTS} | container
    return found | {"environment": [row for row in found["environment"] if row.get("value")]}


def merge_overrides(container: Document, overrides: Document, parameters: dict[str, str]) -> Document:
    found = dict(container)
    for key, name in (("environment", "name"), ("resourceRequirements", "type")):
        rows = {row[name]: row for row in (*found[key], *overrides.get(key, []))}
        found[key] = list(rows.values())
    found |= {key: overrides[key] for key in ("vcpus", "memory", "command") if key in overrides}
    for name in sorted(parameters, key=len, reverse=True):
        found["command"] = [part.replace(f"Ref::{name}", parameters[name]) for part in found["command"]]
    return found
