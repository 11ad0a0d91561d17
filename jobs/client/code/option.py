"""`jobs submit --code`."""

from pathlib import Path
from typing import TYPE_CHECKING

from accel.diagnostics.errors import BadInput

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from .shipping import Shipping


def pack(
    folder: str | None, everything: bool, reporter: "Reporter", requirements: "Path | None" = None
) -> "Shipping | None":
    """Return None where neither a folder nor a requirements file is given. Raises BadInput."""
    if folder is None and everything:
        raise BadInput("--code-all: is for --code FOLDER, which is not given")
    if folder is None and requirements is None:
        return None
    from .requirements import read
    from .shipping import Shipping

    root = None if folder is None else Path(folder)
    wanted = read(requirements, root) if requirements else None
    shipping = Shipping.of(root, everything=everything, requirements=wanted)
    for warning in shipping.warnings:
        reporter.warn(warning)
    reporter.say(shipping.archive.summary())
    return shipping


def send_code(shipping: "Shipping | None", reporter: "Reporter") -> None:
    """Upload the archive for the jobs to fetch. Raises the cloud's errors."""
    for line in shipping.send() if shipping else ():
        reporter.say(line)
