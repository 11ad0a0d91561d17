"""GPUs by NVML, or where it cannot be loaded by nvidia-smi.

NVML is the library that comes with NVIDIA's driver; it is called through ctypes, so that nothing is installed.

Source of every function, structure and number here: https://docs.nvidia.com/deploy/nvml-api/ and nvml.h of
https://github.com/NVIDIA/go-nvml/blob/314e96d0e80c8d21d5e52fd1a697ec2e46e11605/gen/nvml/nvml.h
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from typing import Any, NamedTuple

from .gpus import MIB, Source, State, Unreadable, pci, throttled
from .gpus_smi import Smi

LIBRARY = "libnvidia-ml.so.1"

_OK, _LOST, _RESET_REQUIRED = 0, 15, 16
_FAULTS = {_LOST: "is lost: it fell off the bus", _RESET_REQUIRED: "has to be reset"}
_SENSOR_GPU, _UNCORRECTED, _VOLATILE = 0, 1, 0
_XID_EVENT = 8
_RECOVERY_ACTION = 230
_EVENTS_A_POLL = 64
_NEWEST = "nvmlEventSetWait_v2"
"""Of the functions that are called without a look whether they are there; drivers have it since 450."""


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
    """NVML, started. Raises OSError where there is no such library, or a too old one; Unreadable where it does not
    start."""

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
        """See gpus.Source. A GPU that is lost has its index and name alone."""
        return [self._reading(gpu) for gpu in self._gpus]

    def xids(self) -> dict[int, list[int]]:
        """See gpus.Source. In MIG mode only those of the whole GPU are told to everybody.
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
        """See gpus.Source."""
        return [self._state(gpu) for gpu in self._gpus]

    def driver(self) -> str:
        """See gpus.Source."""
        text = ctypes.create_string_buffer(96)
        return _text(text) if self._nvml.nvmlSystemGetDriverVersion(text, len(text)) == _OK else ""

    def close(self) -> None:
        """See gpus.Source."""
        if self._events:
            self._nvml.nvmlEventSetFree(self._events)
        self._nvml.nvmlShutdown()

    def _known(self, name: str) -> Any:
        """A function of the library; None where the driver is too old to have it."""
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
        """The MIG instances that this process may see: the other places answer that nothing is there."""
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
        """A set of events with the errors of every GPU; None where no GPU gives them."""
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
        if self._reasons and self._reasons(handle, byref(mask)) == _OK and (reasons := throttled(mask.value)):
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
        """Whether a row is to be remapped, and whether one could not be; before Ampere nobody knows."""
        ask, told = self._known("nvmlDeviceGetRemappedRows"), [c_uint() for _ in range(4)]
        if ask is None or ask(handle, *(byref(each) for each in told)) != _OK:
            return None, None
        return bool(told[2].value), bool(told[3].value)

    def _action(self, handle: c_void_p) -> int | None:
        field = _Field(field=_RECOVERY_ACTION)
        if self._nvml.nvmlDeviceGetFieldValues(handle, 1, byref(field)) != _OK or field.code != _OK:
            return None
        return field.value


def opened() -> Source | None:
    """The way to ask the driver here; None on a machine with neither NVML nor nvidia-smi. Raises Unreadable."""
    try:
        return Nvml()
    except OSError:
        pass
    smi = Smi()
    return smi if smi.there() else None


def _text(buffer: Any) -> str:
    return buffer.value.decode("utf-8", "replace")
