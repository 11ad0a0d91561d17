"""A region that is misspelt, in the address or the path of a call that failed: no cloud says so."""

import re

from accel.catalog.aws_partitions import REGION
from accel.catalog.nearest import UnknownName

_GOOGLES = r"[a-z]+-[a-z]+\d{1,2}"
_PLACES = (
    ("aws", re.compile(rf"\.({REGION})\.(?:amazonaws\.com|api\.aws)")),
    ("gcp", re.compile(rf"(?:\b(?:locations|regions)/({_GOOGLES})|\bzones/({_GOOGLES})-[a-z]|//({_GOOGLES})-)\b")),
)


def region(text: str) -> str | None:
    """What to tell of the first region in the text that the catalogue does not know; None where there is none."""
    for cloud, pattern in _PLACES:
        for found in pattern.finditer(text):
            # Here, since the catalogue is needed only where a call has failed.
            from accel.catalog.places import check_region

            name = next(filter(None, found.groups()))
            try:
                check_region(cloud, name)
            except UnknownName as unknown:
                near = f"; did you mean {' or '.join(unknown.nearest)}?" if unknown.nearest else ""
                return f"no region {name} is known{near}"
    return None
