"""Tables as the commands print them."""

import re

from click.testing import Result


def cells(told: Result) -> list[list[str]]:
    """The cells of each line; columns are at least two spaces apart."""
    return [re.split(r"\s{2,}", line.strip()) for line in told.stdout.splitlines()]
