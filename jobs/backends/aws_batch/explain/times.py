"""Times in words."""


def ago(now: float, then: float) -> str:
    """`12 s ago`, `4 min ago`, `3 h ago`, `2 days ago`."""
    return f"{span(now - then)} ago"


def span(seconds: float) -> str:
    """A length of time in a unit that fits it."""
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"
