"""Log entries of a World: kept in the order of their time, and given out in pages."""

import base64
import json
import time
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Any

from .log_filter import Filter

Json = dict[str, Any]
_Place = tuple[int, str]
"""Nanoseconds (negative where the newest are first) and insertId: entries of one time are in the order of these."""


@dataclass
class StoredEntry:
    """An entry, and from when on (monotonic) it can be read."""

    entry: Json
    seen: float


@dataclass
class Logs:
    """Entries by time and insertId: of two that have both alike, one is kept, as a query gives out one only. Source:
    https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry (insertId)."""

    _kept: dict[_Place, StoredEntry] = field(default_factory=dict[_Place, StoredEntry])
    _orders: dict[bool, list[_Place]] = field(default_factory=dict[bool, list[_Place]])

    def add(self, entry: Json, delay_s: float) -> None:
        """`entry` has its time as "__ns" too."""
        place = (entry["__ns"], entry["insertId"])
        if place not in self._kept:
            self._kept[place] = StoredEntry(entry, time.monotonic() + delay_s)
            for newest_first, order in self._orders.items():
                insort(order, (-place[0] if newest_first else place[0], place[1]))

    def page(self, wanted: Filter, newest_first: bool, size: int, token: str) -> tuple[list[Json], str]:
        """Entries that match and can be read by now, and the token of the next page or "". Raises ValueError for a
        token that is none."""
        order = self._order(newest_first)
        if token:
            ns, name = json.loads(base64.urlsafe_b64decode(token))
            start = bisect_right(order, (int(ns), str(name)))
        else:
            start = 0 if newest_first else bisect_left(order, (wanted.since, ""))
        end = bisect_left(order, (-wanted.since + 1, "")) if newest_first else len(order)
        now, found = time.monotonic(), list[Json]()
        for index in range(start, end):
            ns, name = order[index]
            kept = self._kept[-ns if newest_first else ns, name]
            if kept.seen <= now and wanted.holds(kept.entry):
                found.append(kept.entry)
                if len(found) == size:
                    more = index + 1 < end
                    return found, base64.urlsafe_b64encode(json.dumps(order[index]).encode()).decode() if more else ""
        return found, ""

    def _order(self, newest_first: bool) -> list[_Place]:
        if newest_first not in self._orders:
            places = ((-ns, name) for ns, name in self._kept) if newest_first else self._kept
            self._orders[newest_first] = sorted(places)
        return self._orders[newest_first]
