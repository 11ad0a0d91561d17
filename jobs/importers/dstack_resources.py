"""Reader of `resources` in a dstack configuration: numbers, sizes and their ranges, and the many forms of a GPU.
Source: https://dstack.ai/docs/reference/dstack.yml/task/ and dstack's own models."""

import re
from dataclasses import dataclass, field
from typing import Any, cast

from accel.catalog.accelerators import accelerators

from .fields import RequestFields
from .reading import Json
from .tasks import accelerator, least, mib

BASE = "resources"
KNOWN = (
    *("cpu", "memory", "shm_size", "gpu", "disk", "size", "count", "arch", "min", "max", "name", "vendor"),
    *("total_memory", "compute_capability"),
)
VENDORS = {"nvidia": "nvidia", "amd": "amd", "google": "google", "tpu": "google", "intel": "intel", "tt": "tt"} | {
    "tenstorrent": "tt"
}
ARCHITECTURES = ("x86", "x86_64", "amd64", "arm", "arm64", "aarch64")
OF_LEAST = "is the least of a range; a job file has one number"


def read(given: RequestFields, values: Json) -> None:
    _gpu(given, values)
    _cpu(given, values)
    for name, to in (("memory", "memory_mib"), ("shm_size", "shm_mib")):
        _size(given, f"{BASE}.{name}", to, values)
    _size(given, f"{BASE}.disk", "disk_gib", values)
    _size(given, f"{BASE}.disk.size", "disk_gib", values)


def _low(given: RequestFields, path: str) -> tuple[str, list[str]]:
    """Return the lower end of a number or a range, empty if it has none, and the paths that specify it."""
    text = given.values.get(path)
    if isinstance(text, str):
        return least(text)[0], [path]
    at = f"{path}.min"
    value = given.values.get(at)
    paths = [each for each in (at, f"{path}.max") if each in given.values]
    return (value if isinstance(value, str) else ""), paths


def _is_range(given: RequestFields, path: str) -> bool:
    text = given.values.get(path)
    if isinstance(text, str):
        return ".." in text
    return given.values.get(f"{path}.min") != given.values.get(f"{path}.max")


def _size(given: RequestFields, path: str, to: str, values: Json) -> None:
    low, paths = _low(given, path)
    if not paths:
        return
    size = mib(low) if low else None
    if size and to == "disk_gib":
        size = -(-size // 1024)
    if size:
        values[to] = size
    for each in paths:
        name = given.name(each)
        if low and size is None:
            given.report.refuse(name, "must be a size such as 16GB, 512MB or 16GB..32GB")
        elif each.endswith(".max") or not low:
            given.report.changed(name, size, OF_LEAST if size else "has no least; a job file has no upper end")
        elif _is_range(given, path):
            given.report.changed(name, size, OF_LEAST)
        else:
            given.report.keep(name, f"{to}: {size}")


def _cpu(given: RequestFields, values: Json) -> None:
    path = f"{BASE}.cpu"
    count, arch = path, ""
    text = given.values.get(path)
    if isinstance(text, str):
        parts = text.replace(" ", "").split(":")
        arch = next((part for part in parts if part.lower() in ARCHITECTURES), "")
        given.values[path] = next((part for part in parts if part.lower() not in ARCHITECTURES), "")
        if len(parts) > 2 or (len(parts) == 2 and not arch):
            given.report.refuse(given.name(path), "must be a number or a range, with x86: or arm: before it")
            return
    elif given.has(f"{path}.count"):
        count = f"{path}.count"
    if value := given.text(f"{path}.arch"):
        arch = value
        given.leave_value(f"{path}.arch", _of_arch(arch))
    low, paths = _low(given, count)
    number = int(low) if re.fullmatch(r"\d{1,5}", low) and int(low) else 0
    if number:
        values["cpus"] = number
    for each in paths:
        name = given.name(each)
        if low and not number:
            given.report.refuse(name, "must be a number of CPUs such as 8, 8.. or 4..16")
        elif _is_range(given, count) or not low:
            given.report.changed(name, number or None, OF_LEAST if low else "has no least, and a job file no upper end")
        else:
            given.report.keep(name, "cpus")
        if arch and each == path:
            given.report.changed(name, number or None, _of_arch(arch))


def _of_arch(arch: str) -> str:
    return f"{arch[:20]} is the target's: its machines have one architecture, and the image has to be for it"


@dataclass
class _Gpu:
    vendor: str = ""
    names: list[str] = field(default_factory=list[str])
    count: str = "1"
    memory: str = ""
    name_at: str = ""
    count_at: str = ""
    memory_at: str = ""


def _gpu(given: RequestFields, values: Json) -> None:
    path = f"{BASE}.gpu"
    found = _Gpu()
    text = given.values.get(path)
    if isinstance(text, list):
        given.report.refuse(given.name(path), "must be a text such as A100:80GB:2, or a mapping")
        return
    if isinstance(text, str) and text:
        if (fault := _parsed(text, found)) is not None:
            given.report.refuse(given.name(path), fault)
            return
        found.name_at = found.count_at = found.memory_at = path
    elif given.has(path):
        _of_mapping(given, path, found)
    else:
        return
    low, several = least(found.count)
    if several:
        given.report.changed(given.name(found.count_at or path), low or "0", OF_LEAST)
    if low in ("0", "") and found.count:
        for each in given.paths(path):
            given.report.changed(given.name(each), None, "asks for none at least; write accelerator where it needs one")
        return
    if found.vendor not in ("", "nvidia", "google"):
        name = given.name(found.name_at or path)
        given.report.refuse(name, f"is of {found.vendor}, whose accelerators no target has")
        return
    _one(given, path, found, low or "1", values)


def _parsed(text: str, found: _Gpu) -> str | None:
    """Parse a request such as `nvidia:A100,H100:80GB:2..8` into `found`. Return what is wrong with it, or None."""
    for token in text.replace(" ", "").split(":"):
        if not token:
            return "has an empty part between its colons"
        if token.lower() in VENDORS:
            found.vendor = VENDORS[token.lower()]
        elif token[0].isalpha() and not found.names:
            found.names = [each for each in token.split(",") if each]
        elif any(letter.isalpha() for letter in token) and not found.memory:
            found.memory = token
        elif re.fullmatch(r"[\d.]+", token) and found.count == "1":
            found.count = token
        else:
            return f"has a part that is said twice, or is none: {token[:40]}"
    return None


def _of_mapping(given: RequestFields, path: str, found: _Gpu) -> None:
    at = f"{path}.name"
    value = given.values.get(at)
    if isinstance(value, list):
        found.names = [each for each in cast(list[Any], value) if isinstance(each, str)]
    elif text := given.text(at):
        found.names = text.split(",")
    found.name_at = at if at in given.values else ""
    if vendor := given.text(f"{path}.vendor"):
        found.vendor = VENDORS.get(vendor.lower(), vendor[:20])
        if found.vendor == "nvidia" or (found.vendor == "google" and found.names):
            given.leave_value(f"{path}.vendor", "the type says it" if found.names else "is what targets have")
        else:
            given.report.refuse(given.name(f"{path}.vendor"), "is of accelerators that no target has")
        found.name_at = found.name_at or f"{path}.vendor"
    for name in ("count", "memory"):
        at = f"{path}.{name}"
        low, paths = _low(given, at)
        if not paths:
            continue
        if at in given.values:
            low = str(given.values[at])
        for each in paths:
            if each != at:
                given.report.changed(given.name(each), low or None, OF_LEAST)
        if name == "count":
            found.count, found.count_at = low or "0", paths[0]
            given.keep_value(at, "accelerator.count")
        else:
            found.memory, found.memory_at = low, paths[0]
    for name in ("total_memory", "compute_capability"):
        for each in given.paths(f"{path}.{name}"):
            why = "is a choice of GPUs, and a job file names one in accelerator.type"
            given.report.decide(given.name(each), why, is_open=False)


def _one(given: RequestFields, path: str, found: _Gpu, count: str, values: Json) -> None:
    report = given.report
    fits = _fitting(found.memory) if found.memory else []
    name = found.names[0] if found.names else ""
    at = found.name_at or path
    if len(found.names) > 1:
        why = "are several, and a job file has one type: the first is taken; choose another where it is not to be had"
        report.decide(given.name(at), why, new=name, is_open=False)
    if found.vendor == "google" or re.match(r"(tpu-)?v\d", name):
        accelerator(given, at, name or "tpu", "1", values)
        _type_is(given, at, values)
        return
    if name:
        named = _with_memory(name, fits) if found.memory else name
        if named is None:
            said = f"has no {name[:40]} with it; accelerators with it: {', '.join(fits[:6]) or 'none'}"
            report.refuse(given.name(found.memory_at), said)
            return
        accelerator(given, at, named, count, values)
        _type_is(given, at, values)
        if found.memory and found.memory_at != at:
            given.keep_value(found.memory_at, f"accelerator.type: {named}")
        return
    if not re.fullmatch(r"\d{1,3}", count):
        report.refuse(given.name(found.count_at or path), "must be a number of GPUs")
        return
    values["accelerator"] = {"count": int(count)}
    if found.memory:
        said = f"is any GPU with it, and a job file names one or none: accelerator.type may be {', '.join(fits[:6])}"
        if not fits:
            report.refuse(given.name(found.memory_at), "is memory that no accelerator has")
            return
        report.decide(given.name(found.memory_at), said, new="any GPU of the target", is_open=False)
    elif ".." not in found.count:
        given.keep_value(path, "accelerator.count")
        if found.vendor:
            given.keep_value(at, "accelerator")


def _type_is(given: RequestFields, at: str, values: Json) -> None:
    if kind := values.get("accelerator", {}).get("type"):
        given.report.keep(given.name(at), f"accelerator.type: {kind}")


def _fitting(memory: str) -> list[str]:
    """Return the NVIDIA accelerators whose memory is in a range, smallest first."""
    low, _, high = memory.partition("..")
    least_mib = mib(low) or 0
    most_mib = (mib(high) or 2**31) if ".." in memory else least_mib
    found = [
        (kind.nominal_memory_gb, name)
        for name, kind in accelerators().items()
        if least_mib <= kind.nominal_memory_gb * 1024 <= most_mib and kind.vendor.lower() == "nvidia"
    ]
    return [name for _, name in sorted(found)]


def _with_memory(name: str, fits: list[str]) -> str | None:
    """Return the accelerator of a name that has the memory, or None: an A100 with 80GB is another one than A100."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for key in fits:
        parts = [part for part in key.split("-") if part not in ("nvidia", "tesla")]
        if plain in (parts[0], "".join(parts)):
            return name if "".join(parts) == plain else key
    return None
