"""GPUs by nvidia-smi, where its library cannot be loaded: a process for each reading, so it is asked less often.

Its output is read line by line, a line a GPU, with `[N/A]`, `[Not Supported]` and the like for what is not told; the
name comes last, since it may have commas. Source: https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

from .gpus import ACTIONS, State, Unreadable, pci, throttled

TIMEOUT_S = 20.0
"""With a sick GPU nvidia-smi can hang for ever."""

_REASONS, _REASONS_BEFORE_535 = "clocks_event_reasons.active", "clocks_throttle_reasons.active"
_KEYS = {
    "utilization.gpu": "use",
    "utilization.memory": "memory_use",
    "memory.used": "memory_mib",
    "memory.total": "memory_total_mib",
    "power.draw": "power_w",
    "temperature.gpu": "temperature_c",
}
_MIG = "mig.mode.current"
_READING = ("index", _MIG, *_KEYS, _REASONS, "name")
_ECC, _RETIRED, _ACTION = "ecc.errors.uncorrected.volatile.total", "retired_pages.pending", "gpu_recovery_action"
_STATE = ("index", "pci.bus_id", _MIG, _ECC, _RETIRED, _ACTION, "name")
_ROWS = ("gpu_bus_id", "remapped_rows.pending", "remapped_rows.failure")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?: ?(?:%|MiB|W|C))?")
_NO_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
_LOST = re.compile(r"GPU is lost|GPU requires reset", re.IGNORECASE)
_ACTION_WORDS = {"none": 0, "reset": 1, "reboot": 2, "drain p2p": 3, "drain and reset": 4}


class Smi:
    """nvidia-smi; `command` is its name or path."""

    least_s = 10.0
    """A reading takes a process of tens to hundreds of milliseconds, of which a core sees a part."""

    def __init__(self, command: str = "nvidia-smi", timeout_s: float = TIMEOUT_S) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._unknown: set[str] = set()

    def there(self) -> bool:
        """Whether there is such a command."""
        return shutil.which(self._command) is not None

    def read(self) -> list[dict[str, Any]]:
        """See gpus.Source."""
        return [_reading(row) for row in self._query(_READING)]

    def xids(self) -> dict[int, list[int]]:
        """None: nvidia-smi does not tell them."""
        return {}

    def states(self) -> list[State]:
        """See gpus.Source."""
        rows = self._query(_STATE)
        cut = {int(row["index"]) for row in rows if row.get(_MIG) == "Enabled"}
        parts = {index: count for index, count in self._parts().items() if index in cut} if cut else {}
        remapped = self._remapped()
        return [_state(row, parts.get(int(row["index"])), remapped) for row in rows]

    def driver(self) -> str:
        """See gpus.Source."""
        rows = self._rows(["--query-gpu=driver_version", "--format=csv,noheader"])
        return rows[0] if rows else ""

    def close(self) -> None:
        """Nothing is held."""

    def _query(self, fields: tuple[str, ...]) -> list[dict[str, str]]:
        """The cells of each GPU by field; a field that this nvidia-smi does not know is left out."""
        while True:
            asked = [field for field in fields if field not in self._unknown]
            if _REASONS in fields and _REASONS in self._unknown and _REASONS_BEFORE_535 not in self._unknown:
                asked.insert(-1, _REASONS_BEFORE_535)
            try:
                lines = self._rows([f"--query-gpu={','.join(asked)}", "--format=csv,noheader,nounits"])
            except Unreadable as error:
                unknown = _NO_FIELD.search(str(error))
                if unknown is None or unknown[1] not in asked:
                    raise
                self._unknown.add(unknown[1])
                continue
            cells = ([cell.strip() for cell in line.split(",", len(asked) - 1)] for line in lines)
            # Anything else is a remark of the driver's.
            return [dict(zip(asked, row)) for row in cells if len(row) == len(asked) and row[0].isdigit()]

    def _parts(self) -> dict[int, int]:
        """MIG instances by the index of their GPU."""
        found: dict[int, int] = {}
        index = -1
        for line in self._rows(["-L"]):
            if gpu := re.match(r"GPU (\d+):", line):
                index = int(gpu[1])
                found[index] = 0
            elif line.lstrip().startswith("MIG ") and index in found:
                found[index] += 1
        return found

    def _remapped(self) -> dict[Any, tuple[bool | None, bool | None]]:
        """Whether a row is to be remapped, and whether one could not be, by place on the bus."""
        try:
            lines = self._rows([f"--query-remapped-rows={','.join(_ROWS)}", "--format=csv,noheader"])
        except Unreadable:
            return {}  # before Ampere, and with an old driver
        cells = [[cell.strip() for cell in line.split(",")] for line in lines]
        return {pci(row[0]): (_yes(row[1]), _yes(row[2])) for row in cells if len(row) == len(_ROWS)}

    def _rows(self, arguments: list[str]) -> list[str]:
        """The lines that it prints. Raises Unreadable."""
        try:
            process = subprocess.Popen(
                [self._command, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError as error:
            raise Unreadable(f"{self._command}: {error.strerror}") from None
        try:
            output, _ = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            # Not waited for: one that hangs in the driver does not even end when it is killed.
            process.kill()
            raise Unreadable(f"{self._command} did not answer within {self._timeout_s:g} s") from None
        lines = [line for line in output.splitlines() if line.strip()]
        if process.returncode != 0:
            words = next((line for line in lines if _telling(line)), lines[0] if lines else "nothing")
            raise Unreadable(f"{self._command} ended with {process.returncode} and said: {words.strip()}")
        return lines


def _telling(line: str) -> bool:
    return bool(_NO_FIELD.search(line) or _LOST.search(line) or re.search(r"fail|unable|error", line, re.IGNORECASE))


def _reading(row: dict[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = {"index": int(row["index"]), "name": row["name"]}
    if row.get(_MIG) == "Enabled":
        told["mig"] = True
    for field, key in _KEYS.items():
        if (number := _number(row.get(field, ""))) is not None:
            told[key] = number if key == "power_w" else round(number)
    mask = row.get(_REASONS) or row.get(_REASONS_BEFORE_535) or ""
    if re.fullmatch(r"0x[0-9a-fA-F]+", mask) and (reasons := throttled(int(mask, 16))):
        told["throttle"] = reasons
    return told


def _state(row: dict[str, str], parts: int | None, remapped: dict[Any, tuple[bool | None, bool | None]]) -> State:
    place, cells = pci(row["pci.bus_id"]), " ".join(row.values())
    ecc = _number(row.get(_ECC, ""))
    pending, failed = remapped.get(place, (None, None))
    return State(
        number=int(row["index"]),
        name=row["name"],
        pci=place,
        parts=1 if parts is None else parts,
        fault=f"answers: {found[0]}" if (found := _LOST.search(cells)) else "",
        action=_action(row.get(_ACTION, "")),
        ecc=None if ecc is None else int(ecc),
        retired_pending=_yes(row.get(_RETIRED, "")),
        remap_pending=pending,
        remap_failed=failed,
    )


def _number(cell: str) -> float | None:
    found = _NUMBER.fullmatch(cell)
    return float(found[1]) if found else None


def _yes(cell: str) -> bool | None:
    return {"yes": True, "1": True, "no": False, "0": False}.get(cell.lower())


def _action(cell: str) -> int | None:
    word = cell.lower()
    return int(word) if word.isdigit() and int(word) in (0, *ACTIONS) else _ACTION_WORDS.get(word)
