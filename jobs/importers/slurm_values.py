"""Values of Slurm's options: times, memory, indices of an array, GPUs, ranges of nodes."""

import re
from dataclasses import dataclass
from math import ceil

ENDLESS = ("0", "infinite", "unlimited", "-1")
TASKS_MAX = 100_000
HOSTS_MAX = 65_536
"""Largest number of names that Slurm reads in a range: MAX_RANGE of
https://github.com/SchedMD/slurm/blob/master/src/common/hostlist.c"""


def seconds(text: str) -> int | None:
    """Return the seconds of a time, which is `minutes`, `minutes:seconds`, `hours:minutes:seconds` or
    `days-hours[:minutes[:seconds]]`. Return 0 if it has no end, and None if the text is not a time."""
    if text.lower() in ENDLESS:
        return 0
    found = re.fullmatch(r"(?:(\d{1,5})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", text)
    if not found:
        return None
    days, first, second, third = (int(part) if part else None for part in found.groups())
    if days is not None:
        return days * 86_400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    if third is not None:
        return (first or 0) * 3600 + (second or 0) * 60 + third
    return (first or 0) * 60 + (second or 0)


_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


def mib(text: str) -> int | None:
    """Return the MiB of a size such as `16G`, `16GB` or `16000` (in MiB), rounded up, or None if it is not a size."""
    found = re.fullmatch(r"(\d{1,12})(?:\.(\d{1,6}))?\s*([KMGT])?(?:i?B)?", text, re.IGNORECASE)
    if not found:
        return None
    number = float(f"{found[1]}.{found[2] or 0}")
    return ceil(number * _UNITS[(found[3] or "M").upper()])


def nodes(text: str) -> tuple[int, int] | None:
    """Return the minimum and the maximum of a number of nodes such as `4`, `2-8` or `2k`, or None if it is not one."""
    found = re.fullmatch(r"(\d{1,6})([km])?(?:-(\d{1,6})([km])?)?", text, re.IGNORECASE)
    if not found:
        return None
    times = {"": 1, "k": 1024, "m": 1024**2}
    least = int(found[1]) * times[(found[2] or "").lower()]
    most = int(found[3]) * times[(found[4] or "").lower()] if found[3] else least
    return (least, most) if 0 < least <= most else None


_HOST = re.compile(r"((?:[^\s,\[\]{}/]+|\[[\d,-]+\])+)(?:,|$)")
_RANGES = re.compile(r"\[([\d,-]+)\]")


def hosts(text: str) -> int | None:
    """Return the number of different names in a list such as `n1,gpu[01-04,7]`, or None if it is not one: a file, which
    has a / in its name, or a list with more than HOSTS_MAX names."""
    parts = [found[1] for found in _HOST.finditer(text)]
    if not parts or ",".join(parts) != text.rstrip(","):
        return None
    names: set[str] = set()
    for part in parts:
        found = _expanded(part)
        if found is None or len(names) + len(found) > HOSTS_MAX:
            return None
        names.update(found)
    return len(names)


def _expanded(part: str) -> list[str] | None:
    """Return the names of `gpu[01-04,7]`, each with its number as wide as written."""
    names = [""]
    for place, piece in enumerate(_RANGES.split(part)):
        numbers = [piece] if place % 2 == 0 else _numbers(piece)
        if numbers is None or len(names) * len(numbers) > HOSTS_MAX:
            return None
        names = [name + number for name in names for number in numbers]
    return names


def _numbers(text: str) -> list[str] | None:
    found: list[str] = []
    for each in text.split(","):
        ends = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", each)
        if not ends or not 0 <= (more := int(ends[2] or ends[1]) - int(ends[1])) < HOSTS_MAX:
            return None
        found += [f"{int(ends[1]) + offset:0{len(ends[1])}}" for offset in range(more + 1)]
    return found


@dataclass(frozen=True)
class Indices:
    """Indices of an array in their order, and how many run at once."""

    values: tuple[int, ...]
    at_once: int | None

    @property
    def step(self) -> int | None:
        """Difference between successive indices; None if it varies."""
        steps = {second - first for first, second in zip(self.values, self.values[1:], strict=False)} or {1}
        return steps.pop() if len(steps) == 1 else None


def indices(text: str) -> Indices | None:
    """Return the indices of `0-9`, `1-20:5%2` or `1,3,7`, or None if the text is not valid."""
    found = re.fullmatch(r"([\d,:-]+)(?:%(\d{1,6}))?", re.sub(r"[\[\] ]", "", text))
    if not found:
        return None
    values: dict[int, None] = {}
    for part in found[1].split(","):
        each = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", part)
        if not each:
            return None
        first, last, step = int(each[1]), int(each[2] or each[1]), int(each[3] or 1)
        if last < first or not step or (last - first) // step >= TASKS_MAX:
            return None
        values.update(dict.fromkeys(range(first, last + 1, step)))
    at_once = int(found[2]) if found[2] else None
    return Indices(tuple(sorted(values)), at_once or None)


@dataclass(frozen=True)
class Gpus:
    """Number of GPUs, and their kind if given. `rest`: other resources that were asked for."""

    count: int
    kind: str = ""
    rest: tuple[str, ...] = ()


def gpus(text: str) -> Gpus | None:
    """Return the GPUs of `4`, `a100:4` or `gpu:a100:4`, or None if the text names two kinds or is not valid."""
    found = [_gpus(part) for part in re.sub(r"\(.*?\)", "", text).split(",") if part.strip()]
    return found[0] if len(found) == 1 else None


def _gpus(part: str) -> Gpus | None:
    plain = re.sub(r"^(gres[:/]|nvidia\.com/(?=gpu))", "", part.strip())
    words = [word for word in re.split(r"[:=]", plain) if word]
    if len(words) > 1 and re.fullmatch(r"(?i)gpus?", words[0]):
        words.pop(0)
    elif len(words) == 1 and re.fullmatch(r"(?i)gpus?", words[0]):
        return Gpus(1)
    number = words.pop() if words and re.fullmatch(r"\d{1,6}", words[-1]) else "1"
    is_one = len(words) < 2 and all(re.fullmatch(r"[\w.+ -]+", word) for word in words)
    return Gpus(int(number), words[0] if words else "") if is_one else None


def gres(text: str) -> Gpus | None:
    """Return the GPUs of a --gres value as gpus() does, with everything that is not a GPU as another resource."""
    parts = [part.strip() for part in re.sub(r"\(.*?\)", "", text).split(",") if part.strip()]
    ours = [part for part in parts if re.match(r"(?i)(gres[:/])?gpus?\b", part)]
    rest = tuple(part for part in parts if part not in ours and part.lower() != "none")
    if not ours:
        return Gpus(0, "", rest)
    found = gpus(",".join(ours))
    return found and Gpus(found.count, found.kind, rest)
