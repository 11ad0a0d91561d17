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
    """The folder's files, and a file of requirements, packed and told; None where neither is to be sent. Raises
    BadInput."""
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
    """Put the archive where the jobs will look for it. Raises what the cloud says."""
    for line in shipping.send() if shipping else ():
        reporter.say(line)
