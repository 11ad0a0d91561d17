"""Access to GPUs by NVML, or by nvidia-smi if NVML cannot be loaded. NVML is the library that comes with NVIDIA's
driver; it is called through ctypes, so that nothing is installed. Source of every function, structure and number here:
https://docs.nvidia.com/deploy/nvml-api/ and nvml.h of
https://github.com/NVIDIA/go-nvml/blob/314e96d0e80c8d21d5e52fd1a697ec2e46e11605/gen/nvml/nvml.h

nvidia-smi is a process for each reading, so it is asked less often. Its output has a line for each GPU, with `[N/A]`,
`[Not Supported]` and the like for unknown values. The name comes last, since it may have commas. Source:
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from ctypes import byref, c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from typing import Any, NamedTuple

from .gpus import ACTIONS, MIB, Source, State, Unreadable, pci, throttle_reasons

LIBRARY = "libnvidia-ml.so.1"

_OK, _LOST, _RESET_REQUIRED = 0, 15, 16
_FAULTS = {_LOST: "is lost: it fell off the bus", _RESET_REQUIRED: "has to be reset"}
_SENSOR_GPU, _UNCORRECTED, _VOLATILE = 0, 1, 0
_XID_EVENT = 8
_RECOVERY_ACTION = 230
_EVENTS_A_POLL = 64
_NEWEST = "nvmlEventSetWait_v2"
"""Newest of the functions that are called without a check that they exist; drivers have it since 450."""


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class _Pci(ctypes.Structure):
    _fields_ = (
        ("legacy", c_char * 16), ("domain", c_uint), ("bus", c_uint), ("device", c_uint), ("ids", c_uint),
        ("subsystem", c_uint), ("bus_id", c_char * 32),
    )  # fmt: skip


class _Event(ctypes.Structure):
    _fields_ = (
        ("device", c_void_p), ("kind", c_ulonglong), ("data", c_ulonglong), ("instance", c_uint), ("compute", c_uint),
    )  # fmt: skip


class _Field(ctypes.Structure):
    # The value is a union of 8 bytes; an unsigned int lies in its first four.
    _fields_ = (
        ("field", c_uint), ("scope", c_uint), ("timestamp", c_longlong), ("latency", c_longlong), ("kind", c_int),
        ("code", c_int), ("value", c_uint), ("rest", c_uint),
    )  # fmt: skip


class _Gpu(NamedTuple):
    number: int
    handle: c_void_p | None
    fault: str
    name: str
    parts: list[c_void_p] | None
    """Handles of the MIG instances; None without MIG."""


class Nvml:
    """The started NVML library. Raises OSError if it is missing or too old, and Unreadable if it does not start."""

    least_s = 0.0

    def __init__(self, library: str = LIBRARY) -> None:
        self._nvml = ctypes.CDLL(library)
        if self._known(_NEWEST) is None:
            raise OSError(f"{library} has no {_NEWEST}")
        self._nvml.nvmlErrorString.restype = ctypes.c_char_p
        self._check(self._nvml.nvmlInit_v2())
        # Its name since driver 535, and the one before.
        self._reasons = self._known("nvmlDeviceGetCurrentClocksEventReasons") or self._known(
            "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        count = c_uint()
        self._check(self._nvml.nvmlDeviceGetCount_v2(byref(count)))
        self._gpus = [self._gpu(index) for index in range(count.value)]
        self._indexes = {gpu.handle.value: gpu.number for gpu in self._gpus if gpu.handle}
        self._events = self._listening()

    def read(self) -> list[dict[str, Any]]:
        """Return only the index and name of a lost GPU."""
        return [self._reading(gpu) for gpu in self._gpus]

    def xids(self) -> dict[int, list[int]]:
        """Return errors as gpus.Source does. In MIG mode, only errors of the whole GPU are reported to every process.
        https://docs.nvidia.com/deploy/nvml-api/group__nvmlEvents.html"""
        found: dict[int, list[int]] = {}
        event = _Event()
        for _ in range(_EVENTS_A_POLL if self._events else 0):
            if self._nvml.nvmlEventSetWait_v2(self._events, byref(event), 0) != _OK:
                break
            index = self._indexes.get(event.device)
            if event.kind == _XID_EVENT and index is not None:
                found.setdefault(index, []).append(event.data)
        return found

    def states(self) -> list[State]:
        return [self._state(gpu) for gpu in self._gpus]

    def driver(self) -> str:
        text = ctypes.create_string_buffer(96)
        return _text(text) if self._nvml.nvmlSystemGetDriverVersion(text, len(text)) == _OK else ""

    def close(self) -> None:
        if self._events:
            self._nvml.nvmlEventSetFree(self._events)
        self._nvml.nvmlShutdown()

    def _known(self, name: str) -> Any:
        """Return a function of the library, or None if the driver is too old to have it."""
        return getattr(self._nvml, name, None)

    def _check(self, code: int) -> None:
        if code != _OK:
            raise Unreadable(f"NVML: {self._nvml.nvmlErrorString(code).decode('utf-8', 'replace')} (error {code})")

    def _gpu(self, index: int) -> _Gpu:
        handle = c_void_p()
        code = self._nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(handle))
        if code != _OK:
            words = self._nvml.nvmlErrorString(code).decode("utf-8", "replace")
            return _Gpu(index, None, _FAULTS.get(code, f"does not answer: {words} (error {code})"), "", None)
        name = ctypes.create_string_buffer(96)
        told = self._nvml.nvmlDeviceGetName(handle, name, len(name)) == _OK
        return _Gpu(index, handle, "", _text(name) if told else "", self._parts(handle))

    def _parts(self, handle: c_void_p) -> list[c_void_p] | None:
        """Return None without MIG. Places whose instance this process may not see answer that nothing is there."""
        ask, now, then = self._known("nvmlDeviceGetMigMode"), c_uint(), c_uint()
        if ask is None or ask(handle, byref(now), byref(then)) != _OK or now.value != 1:
            return None
        most = c_uint()
        self._check(self._nvml.nvmlDeviceGetMaxMigDeviceCount(handle, byref(most)))
        found: list[c_void_p] = []
        for place in range(most.value):
            part = c_void_p()
            if self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place, byref(part)) == _OK:
                found.append(part)
        return found

    def _listening(self) -> c_void_p | None:
        events = c_void_p()
        if self._nvml.nvmlEventSetCreate(byref(events)) != _OK:
            return None
        wanted = c_ulonglong(_XID_EVENT)
        codes = [self._nvml.nvmlDeviceRegisterEvents(gpu.handle, wanted, events) for gpu in self._gpus if gpu.handle]
        if _OK in codes:
            return events
        self._nvml.nvmlEventSetFree(events)
        return None

    def _reading(self, gpu: _Gpu) -> dict[str, Any]:
        told: dict[str, Any] = {"index": gpu.number}
        if gpu.name:
            told["name"] = gpu.name
        handle = gpu.handle
        if handle is None:
            return told
        nvml, use = self._nvml, _Utilization()
        if gpu.parts is not None:
            told["mig"] = True  # and NVML tells no use of it
        elif nvml.nvmlDeviceGetUtilizationRates(handle, byref(use)) == _OK:
            # Of memory: the share of time in which it was read or written.
            # https://docs.nvidia.com/deploy/nvml-api/structnvmlUtilization__t.html
            told["use"], told["memory_use"] = use.gpu, use.memory
        self._memory(told, [handle] if gpu.parts is None else gpu.parts)
        number, mask = c_uint(), c_ulonglong()
        if nvml.nvmlDeviceGetPowerUsage(handle, byref(number)) == _OK:
            told["power_w"] = round(number.value / 1000, 1)
        if nvml.nvmlDeviceGetTemperature(handle, _SENSOR_GPU, byref(number)) == _OK:
            told["temperature_c"] = number.value
        if self._reasons and self._reasons(handle, byref(mask)) == _OK and (reasons := throttle_reasons(mask.value)):
            told["throttle"] = reasons
        return told

    def _memory(self, told: dict[str, Any], handles: list[c_void_p]) -> None:
        used = total = 0
        memory = _Memory()
        for handle in handles:
            if self._nvml.nvmlDeviceGetMemoryInfo(handle, byref(memory)) != _OK:
                return
            used, total = used + memory.used, total + memory.total
        told["memory_mib"], told["memory_total_mib"] = used // MIB, total // MIB

    def _state(self, gpu: _Gpu) -> State:
        parts = 1 if gpu.parts is None else len(gpu.parts)
        if gpu.handle is None:
            return State(gpu.number, gpu.name, None, 0, gpu.fault, None, None, None, None, None)
        place, ecc, retired, degrees = _Pci(), c_ulonglong(), c_uint(), c_uint()
        code = self._nvml.nvmlDeviceGetPciInfo_v3(gpu.handle, byref(place))
        # Where it lies may be known of a GPU that is gone; how warm it is, is not.
        alive = self._nvml.nvmlDeviceGetTemperature(gpu.handle, _SENSOR_GPU, byref(degrees))
        counted = self._nvml.nvmlDeviceGetTotalEccErrors(gpu.handle, _UNCORRECTED, _VOLATILE, byref(ecc)) == _OK
        paged = self._nvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu.handle, byref(retired)) == _OK
        pending, failed = self._remapped(gpu.handle)
        return State(
            number=gpu.number,
            name=gpu.name,
            pci=pci(place.bus_id.decode()) if code == _OK else None,
            parts=parts,
            fault=_FAULTS.get(code) or _FAULTS.get(alive, ""),
            action=self._action(gpu.handle),
            ecc=ecc.value if counted else None,
            retired_pending=bool(retired.value) if paged else None,
            remap_pending=pending,
            remap_failed=failed,
        )

    def _remapped(self, handle: c_void_p) -> tuple[bool | None, bool | None]:
        """Return whether a row is to be remapped, and whether one could not be. Both are unknown before Ampere."""
        ask, told = self._known("nvmlDeviceGetRemappedRows"), [c_uint() for _ in range(4)]
        if ask is None or ask(handle, *(byref(each) for each in told)) != _OK:
            return None, None
        return bool(told[2].value), bool(told[3].value)

    def _action(self, handle: c_void_p) -> int | None:
        field = _Field(field=_RECOVERY_ACTION)
        if self._nvml.nvmlDeviceGetFieldValues(handle, 1, byref(field)) != _OK or field.code != _OK:
            return None
        return field.value


def open_source() -> Source | None:
    """Return None on a machine with neither NVML nor nvidia-smi. Raise Unreadable."""
    try:
        return Nvml()
    except OSError:
        pass
    smi = Smi()
    return smi if smi.there() else None


def _text(buffer: Any) -> str:
    return buffer.value.decode("utf-8", "replace")


TIMEOUT_S = 20.0
"""Limit for one call of nvidia-smi, which can hang forever if a GPU is faulty."""

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
_LOST_TEXT = re.compile(r"GPU is lost|GPU requires reset", re.IGNORECASE)
_ACTION_WORDS = {"none": 0, "reset": 1, "reboot": 2, "drain p2p": 3, "drain and reset": 4}


class Smi:
    """nvidia-smi; `command` is its name or path."""

    least_s = 10.0
    """A reading takes a process of tens to hundreds of milliseconds, part of which is CPU time."""

    def __init__(self, command: str = "nvidia-smi", timeout_s: float = TIMEOUT_S) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._unknown: set[str] = set()

    def there(self) -> bool:
        return shutil.which(self._command) is not None

    def read(self) -> list[dict[str, Any]]:
        return [_reading(row) for row in self._query(_READING)]

    def xids(self) -> dict[int, list[int]]:
        """Return nothing: nvidia-smi does not report XIDs."""
        return {}

    def states(self) -> list[State]:
        rows = self._query(_STATE)
        cut = {int(row["index"]) for row in rows if row.get(_MIG) == "Enabled"}
        parts = {index: count for index, count in self._parts().items() if index in cut} if cut else {}
        remapped = self._remapped()
        return [_state(row, parts.get(int(row["index"])), remapped) for row in rows]

    def driver(self) -> str:
        rows = self._rows(["--query-gpu=driver_version", "--format=csv,noheader"])
        return rows[0] if rows else ""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _query(self, fields: tuple[str, ...]) -> list[dict[str, str]]:
        """Return the cells of each GPU by field. Leave out the fields that this nvidia-smi does not have."""
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
        """Return the number of MIG instances by the index of their GPU."""
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
        """Return whether a row is to be remapped, and whether one could not be, by place on the bus."""
        try:
            lines = self._rows([f"--query-remapped-rows={','.join(_ROWS)}", "--format=csv,noheader"])
        except Unreadable:
            return {}  # before Ampere, and with an old driver
        cells = [[cell.strip() for cell in line.split(",")] for line in lines]
        return {pci(row[0]): (_yes(row[1]), _yes(row[2])) for row in cells if len(row) == len(_ROWS)}

    def _rows(self, arguments: list[str]) -> list[str]:
        """Raise Unreadable if nvidia-smi fails."""
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
    return bool(
        _NO_FIELD.search(line) or _LOST_TEXT.search(line) or re.search(r"fail|unable|error", line, re.IGNORECASE)
    )


def _reading(row: dict[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = {"index": int(row["index"]), "name": row["name"]}
    if row.get(_MIG) == "Enabled":
        told["mig"] = True
    for field, key in _KEYS.items():
        if (number := _number(row.get(field, ""))) is not None:
            told[key] = number if key == "power_w" else round(number)
    mask = row.get(_REASONS) or row.get(_REASONS_BEFORE_535) or ""
    if re.fullmatch(r"0x[0-9a-fA-F]+", mask) and (reasons := throttle_reasons(int(mask, 16))):
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
        fault=f"answers: {found[0]}" if (found := _LOST_TEXT.search(cells)) else "",
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
