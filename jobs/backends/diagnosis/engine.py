"""The engine that judges a job's facts: the first rule that holds names the cause. Pure but for what the facts read."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from ..base import Explanation
from .causes import CAUSES

EVIDENCE_WIDTH = 400

T = TypeVar("T")
FactsT = TypeVar("FactsT", bound="Facts")
Rule = Callable[[FactsT], Explanation | None]


class Facts:
    """Facts about one job. A platform's subclass reads each fact once, when a rule first needs it."""

    PLATFORM: ClassVar[str]
    NEXT_STEPS: ClassVar[Mapping[str, str]] = {}
    """Next steps of this platform by cause, in place of those in the table of causes."""

    @property
    def unread(self) -> Iterable[str]:
        """What could not be read, each with the permission that it needs. An unread source makes no cause true."""
        return ()

    def texts(self, kind: str) -> Sequence[str]:
        """Return what the platform says in one place, newest first."""
        raise KeyError(kind)

    def context(self, kind: str) -> Sequence[str]:
        """Return evidence that belongs to texts of a kind, such as their task or attempt."""
        return ()

    def unknown(self) -> Explanation:
        return self.explanation("unknown")

    @classmethod
    def explanation(
        cls, cause: str, reason: str = "", evidence: Iterable[str] = (), next_step: str = ""
    ) -> Explanation:
        """Take the table's words where the rule has none, and cut the evidence to a readable width."""
        row = CAUSES[cause]
        assert cls.PLATFORM in row.sources, f"{cause} is no cause of {cls.PLATFORM}"
        step = next_step or cls.NEXT_STEPS.get(cause) or row.next_step
        return Explanation(cause, reason or row.reason, tuple(cut(line) for line in evidence if line), step)


class LazyFacts(Facts):
    """Facts from API calls, with a record of the calls that were refused."""

    MISSING_IS_UNREAD: ClassVar[bool] = True

    def __init__(self) -> None:
        self._unread: dict[str, None] = {}
        self.now = datetime.now(UTC)

    @property
    def unread(self) -> tuple[str, ...]:
        return tuple(self._unread)

    def miss(self, what: str) -> None:
        self._unread[what] = None

    def read(self, what: str, call: Callable[[], T]) -> T | None:
        """Return None if the call is refused or its subject is missing."""
        try:
            return call()
        except NotFound as error:
            if self.MISSING_IS_UNREAD:
                self.miss(f"{what}: {error.message}")
        except (CloudRefused, CloudSilent) as error:
            self.miss(f"{what}: {error.message}")
        return None

    def age_s(self, moment: datetime | None) -> float:
        """Return 0 without a moment."""
        return (self.now - moment).total_seconds() if moment else 0.0


@dataclass(frozen=True)
class Row:
    """Words that name a cause, the kind of text that has them, and the reason and next step if not the table's."""

    cause: str
    pattern: re.Pattern[str]
    kind: str = ""
    reason: str = ""
    next_step: str = ""
    within: re.Pattern[str] | None = None
    """Additional pattern that a text must have."""

    def fits(self, text: str) -> bool:
        return bool(self.pattern.search(text)) and (self.within is None or bool(self.within.search(text)))

    def explanation(self, facts: Facts, text: str, more: Iterable[str] = ()) -> Explanation:
        return facts.explanation(self.cause, self.reason, (text, *more), self.next_step)

    def __call__(self, facts: Facts) -> Explanation | None:
        """Judge the texts of the row's kind, so that a row is a rule."""
        text = next((text for text in facts.texts(self.kind) if self.fits(text)), None)
        return None if text is None else self.explanation(facts, text, facts.context(self.kind))


def row(cause: str, pattern: str, reason: str = "", next_step: str = "", kind: str = "") -> Row:
    return Row(cause, re.compile(pattern, re.IGNORECASE), kind, reason, next_step)


def within(pattern: str, rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(replace(each, within=re.compile(pattern, re.IGNORECASE)) for each in rows)


def of_kind(kind: str, *rows: Row) -> tuple[Row, ...]:
    return tuple(replace(each, kind=kind) for each in rows)


def newest(kind: str, rows: Sequence[Row]) -> Rule[Any]:
    """Return a rule: the newest text of a kind that any row fits decides, by the first such row."""

    def rule(facts: Facts) -> Explanation | None:
        return match(facts, rows, facts.texts(kind), facts.context(kind))

    return rule


def match(facts: Facts, rows: Iterable[Row], texts: Iterable[str], more: Iterable[str] = ()) -> Explanation | None:
    """Return the cause for the first text that any row fits."""
    rows = tuple(rows)
    found = ((each, text) for text in texts for each in rows if each.fits(text))
    first = next(found, None)
    return first and first[0].explanation(facts, first[1], more)


def judge(facts: FactsT, rules: Iterable[Rule[FactsT]]) -> Explanation | None:
    return next((found for rule in rules if (found := rule(facts))), None)


def diagnose(facts: FactsT, rules: Iterable[Rule[FactsT]]) -> Explanation:
    found = judge(facts, rules) or facts.unknown()
    return replace(found, unread=tuple(facts.unread))


def cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EVIDENCE_WIDTH else text[: EVIDENCE_WIDTH - 3] + "..."


def span(seconds: float) -> str:
    """Return a duration in words: `45 s`, `12 min`, `3 h 20 min`, `2 days`."""
    if seconds < 120:
        return f"{max(0, int(seconds))} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} days"
