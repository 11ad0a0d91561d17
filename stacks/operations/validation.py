"""Output of `stacks validate`: stack files, and with --online the existing resources of their clouds."""

from pathlib import Path

from accel.diagnostics.errors import BadInputs

from .stack_files import read_stacks


def validate(paths: list[Path], strict: bool, online: bool = False) -> list[str]:
    """Return lines about valid files. Raise BadInputs as read_stacks does, and with `online` for what exists."""
    lines: list[str] = []
    faults: list[str] = []
    for stack in read_stacks(paths, strict, locks=True):
        lines += [f"{stack.path}: valid", *(f"warning: {line}" for line in stack.warnings)]
        if online:
            from .online.environment import lines as existing  # loads the clients of both clouds

            shown, wrong = existing(stack, strict or stack.environment.strict)
            lines += shown
            faults += wrong
    if faults:
        raise BadInputs(faults)
    return lines
