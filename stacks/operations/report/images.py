"""Images, drivers and versions that change: the values themselves, which are no secrets."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any, cast

from .preview import Preview

FIELDS: Mapping[str, str] = {
    "image": "image",
    "imageId": "image of instances",
    "imageIdOverride": "image of instances",
    "image_id_override": "image of instances",
    "imageType": "image of nodes",
    "image_type": "image of nodes",
    "sourceImage": "image of the boot disk",
    "boot_image": "image of the boot disk",
    "runtimeVersion": "TPU runtime",
    "runtime_version": "TPU runtime",
    "gpuDriverVersion": "GPU driver",
    "driver": "GPU driver",
    "driver_version": "GPU driver",
    "minMasterVersion": "Kubernetes",
    "nodeVersion": "Kubernetes of nodes",
    "release": "release",
    "version": "version",
}
"""Names of properties, at any depth."""
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What the engine writes for a string that only the update will tell. Source:
https://github.com/pulumi/pulumi/blob/00d498e306299cb053d93a5c1bbc2566e92b70bc/sdk/go/common/resource/plugin/rpc.go"""
VERSIONED = ("accel:", "gcp:container/")
"""Types whose `version` is that of software; a launch template's is a number that counts."""


@dataclass(frozen=True)
class Moved:
    """One value that is another one afterwards."""

    resource: str
    what: str
    before: str
    after: str


def moved(preview: Preview) -> tuple[Moved, ...]:
    """Of what is updated or replaced; each pair once, at the component where it is set."""
    found: dict[tuple[str, str, str], Moved] = {}
    for change in sorted(preview.changes, key=lambda each: not each.is_component):
        if change.op not in ("update", "replace"):
            continue
        before, after = dict(_leaves(change.old_inputs)), dict(_leaves(change.new_inputs))
        for path in before.keys() | after.keys():
            name = path[-1]
            if name == "version" and not change.type.startswith(VERSIONED):
                continue
            pair = (before.get(path, ""), after.get(path, ""))
            if pair[0] != pair[1]:
                found.setdefault((name.casefold(), *pair), Moved(change.name, FIELDS[name], *pair))
    return tuple(sorted(found.values(), key=astuple))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, inner in cast(dict[str, Any], value).items():
            if key in FIELDS and isinstance(inner, str):
                yield (*path, key), "known after the update" if inner == UNKNOWN else inner
            else:
                yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast(list[Any], value)):
            yield from _leaves(inner, (*path, str(index)))
