"""Known names most similar to an unknown one, for "did you mean"."""

from collections.abc import Iterable, Sequence


def nearest(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return at most `n` of `known`, most similar first; empty if none is similar. Ignores case and takes `_` for `-`.
    The distance counts single edits (insert, delete, replace, swap neighbours), since plain difflib ratios rank
    `g6.xlarge` before `g5.xlarge` for some typos."""
    # Needed only for a wrong name, and takes 3 ms to import.
    from difflib import SequenceMatcher

    if n < 1:
        raise ValueError(f"n must be at least 1, is {n}")
    wanted = _folded(name)
    allowed = max(2, len(wanted) // 3)
    similar: list[tuple[int, str]] = []
    for candidate in dict.fromkeys(known):
        folded = _folded(candidate)
        distance = edits(wanted, folded, allowed)
        if distance > allowed or distance >= max(len(wanted), len(folded)):
            # A stem such as "p4d.24" is many edits away from the only name that it can mean.
            if not (len(wanted) >= 2 and folded.startswith(wanted)):
                continue
            distance = allowed + 1
        similar.append((distance, candidate))
    similar.sort(key=lambda each: each[0])
    furthest = similar[:n][-1][0] if similar else 0
    close = [(distance, candidate) for distance, candidate in similar if distance <= furthest]
    close.sort(key=lambda each: (each[0], -SequenceMatcher(None, wanted, _folded(each[1])).ratio()))
    return [candidate for _, candidate in close[:n]]


_LISTED = 40
"""Most known names that a message lists when none is similar."""


class UnknownName(LookupError):
    """A name that the catalogue does not have. `nearest` holds the most similar known names. If there are none,
    `listed` has all known names, or the ones the caller passes for display, unless there are too many."""

    def __init__(self, kind: str, name: str, known: Iterable[str], listed: Iterable[str] | None = None) -> None:
        known = tuple(known)
        shown = known if listed is None else tuple(listed)
        self.kind = kind
        self.name = name
        self.nearest = tuple(nearest(name, known))
        self.listed = shown if not self.nearest and len(shown) <= _LISTED else ()
        if self.nearest:
            hint = f"nearest: {', '.join(self.nearest)}"
        else:
            hint = f"known: {', '.join(self.listed)}" if self.listed else "nothing similar is known"
        super().__init__(f'unknown {kind} "{name}"; {hint}')


class UnavailableName(UnknownName):
    """A known name that is not available at all, or not in the requested place; `nearest` holds what is available. An
    UnknownName, since the caller has to choose another name either way."""

    def __init__(self, kind: str, name: str, why: str, nearest: Sequence[str]) -> None:
        self.kind = kind
        self.name = name
        self.nearest = tuple(nearest)
        self.listed = ()
        LookupError.__init__(self, why)


class AmbiguousName(LookupError):
    """A name with several meanings. `choices` holds the names that have one."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.choices = tuple(choices)
        super().__init__(f'{kind} "{name}" is ambiguous; choose one of {", ".join(self.choices)}')


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")


def edits(left: str, right: str, limit: int) -> int:
    """Return the optimal string alignment distance; any number above `limit` means "more than `limit`"."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before_last, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
