"""Cache of account limits on this machine, kept for an hour, which saves the calls on each submission."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..folders import cache, write_json

MAX_AGE_S = 3600.0
DOUBTED_S = 60.0
"""Age after which a limit that is too small is fetched again, since it may have been raised."""


@dataclass(frozen=True)
class Limit:
    """A limit in the quota's unit, or None and the reason why it is unknown."""

    value: float | None
    why: str = ""


def cached_limits(
    identity: str,
    names: Iterable[str],
    ask: Callable[[list[str]], Mapping[str, Limit]],
    *,
    max_age_s: float = MAX_AGE_S,
    now: float | None = None,
) -> dict[str, Limit]:
    """Return the limits by name, from this machine's copy if it is recent enough, otherwise from `ask`, which receives
    the missing names. `identity` identifies the account: one account's limits must not be used for another."""
    now = time.time() if now is None else now
    wanted = list(dict.fromkeys(names))
    path = cache() / f"quotas-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    kept = _kept(path, now)
    found = {name: kept[name] for name in wanted if name in kept and now - kept[name][0] < max_age_s}
    missing = [name for name in wanted if name not in found]
    if missing:
        fresh = {name: (now, limit) for name, limit in ask(missing).items()}
        _keep(path, {**kept, **fresh})
        found |= fresh
    return {name: limit for name, (_, limit) in found.items()}


def _kept(path: Path, now: float) -> dict[str, tuple[float, Limit]]:
    """Return each entry with its time. Ignores an unreadable copy, and times in the future: the clock was set back."""
    try:
        rows: dict[str, Any] = dict(json.loads(path.read_text()))
        kept = {name: (float(row["at"]), Limit(_number(row["value"]), str(row["why"]))) for name, row in rows.items()}
        return {name: row for name, row in kept.items() if 0 <= now - row[0] < MAX_AGE_S}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _keep(path: Path, rows: Mapping[str, tuple[float, Limit]]) -> None:
    document = {name: {"at": at, "value": limit.value, "why": limit.why} for name, (at, limit) in rows.items()}
    # Without a copy the next command asks again, which costs one call only.
    with suppress(OSError):
        write_json(path, document)
