"""Misspelt regions in the address or the path of a failed call, which no cloud reports."""

import re

from accel.catalog.aws_partitions import REGION
from accel.catalog.nearest import UnknownName

_GOOGLES = r"[a-z]+-[a-z]+\d{1,2}"
_PLACES = (
    ("aws", re.compile(rf"\.({REGION})\.(?:amazonaws\.com|api\.aws)")),
    ("gcp", re.compile(rf"(?:\b(?:locations|regions)/({_GOOGLES})|\bzones/({_GOOGLES})-[a-z]|//({_GOOGLES})-)\b")),
)


def region(text: str) -> str | None:
    """Return a hint about the first region that the catalogue does not know."""
    for cloud, pattern in _PLACES:
        for found in pattern.finditer(text):
            # Imported here, since the catalogue is needed only after a failed call.
            from accel.catalog.places import check_region

            name = next(filter(None, found.groups()))
            try:
                check_region(cloud, name)
            except UnknownName as unknown:
                near = f"; did you mean {' or '.join(unknown.nearest)}?" if unknown.nearest else ""
                return f"no region {name} is known{near}"
    return None
