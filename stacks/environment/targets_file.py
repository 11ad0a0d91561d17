"""The file from which `jobs` reads targets, and an update that writes it."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi

EXPORT = "ACCEL_EXPORT"
"""Environment variable: the file to which each `pulumi up` writes its targets, as `stacks export` does on request."""


def write(targets: Mapping[str, Any], out: Path) -> None:
    """Write a temporary file and rename it, so that a reader never sees half a file. Raise OSError."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=out.parent, prefix=out.name, delete=False) as half:
        json.dump(targets, half, indent=2, sort_keys=True)
        half.write("\n")
    Path(half.name).replace(out)


def write_targets(targets: Mapping[str, pulumi.Output[Any]]) -> Any:
    """Write the targets to the file that EXPORT names, except in a preview or where one is missing; return them."""
    out = os.environ.get(EXPORT)
    if not out or pulumi.runtime.is_dry_run():
        return targets

    def put(known: dict[str, Any]) -> dict[str, Any]:
        if all(known.values()):
            try:
                write(known, Path(out))
            except OSError as error:
                pulumi.log.warn(f"targets are not written to {out}: {error}; `stacks export` does it")
        return known

    return pulumi.Output.all(**targets).apply(put)
