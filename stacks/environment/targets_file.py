"""The file from which `jobs` reads targets, and an update that writes it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi

from accel.diagnostics.errors import BadInput
from accel.files import write_output

EXPORT = "ACCEL_EXPORT"
"""Environment variable: the file to which each `pulumi up` writes its targets, as `stacks export` does on request."""


def write(targets: Mapping[str, Any], out: Path, option: str = "--out") -> None:
    """Raise BadInput if the file cannot be written."""
    # Nobody else may write to it: `accel-jobs` refuses such a file.
    write_output(option, out, json.dumps(targets, indent=2, sort_keys=True) + "\n", 0o600, folders=True)


def write_targets(targets: Mapping[str, pulumi.Output[Any]]) -> Any:
    """Write the targets to the file that EXPORT names, except in a preview or where one is missing; return them."""
    out = os.environ.get(EXPORT)
    if not out or pulumi.runtime.is_dry_run():
        return targets

    def put(known: dict[str, Any]) -> dict[str, Any]:
        if all(known.values()):
            try:
                write(known, Path(out), EXPORT)
            except BadInput as error:
                pulumi.log.warn(f"{error.message}; `stacks export` writes the targets")
        return known

    return pulumi.Output.all(**targets).apply(put)
