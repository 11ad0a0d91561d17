"""`jobs submit --code`."""

from pathlib import Path
from typing import TYPE_CHECKING

from accel.diagnostics.errors import BadInput

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from .shipping import Shipping


def pack(folder: str | None, everything: bool, reporter: "Reporter") -> "Shipping | None":
    """The folder's files, packed and told; None where no code is to be sent. Raises BadInput."""
    if folder is None:
        if everything:
            raise BadInput("--code-all: is for --code FOLDER, which is not given")
        return None
    from .shipping import Shipping

    shipping = Shipping.of(Path(folder), everything=everything)
    for warning in shipping.warnings:
        reporter.warn(warning)
    reporter.say(shipping.archive.summary())
    return shipping


def send_code(shipping: "Shipping | None", reporter: "Reporter") -> None:
    """Put the archive where the jobs will look for it. Raises what the cloud says."""
    for line in shipping.send() if shipping else ():
        reporter.say(line)
