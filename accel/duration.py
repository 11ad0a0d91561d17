"""Durations as people write them: 90, 90s, 30m, 4h, 2d."""

import re

WRITTEN = "a whole number of seconds, or 90s, 30m, 4h, 2d"

PATTERN = "([0-9]{1,12})([smhd]?)"
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds(text: str) -> int | None:
    match = re.fullmatch(PATTERN, text.strip())
    return int(match[1]) * _SECONDS[match[2]] if match else None
