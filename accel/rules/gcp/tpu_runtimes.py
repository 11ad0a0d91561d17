"""TPU software versions (`runtime_version`) against their slice."""

import re

from accel.catalog.tpu import Slice
from accel.catalog.tpu_generations import GENERATIONS
from accel.diagnostics.findings import Finding
from accel.rules.gcp.tpu import find_slice
from accel.rules.table import rule

OLD = rule("gcp.tpu.runtime-old")
GENERATION = rule("gcp.tpu.runtime-generation")
BASE = rule("gcp.tpu.runtime-base")
POD = rule("gcp.tpu.runtime-pod")
TENSORFLOW = rule("gcp.tpu.runtime-tensorflow")
UNKNOWN = rule("gcp.tpu.runtime-unknown")

OLD_RUNTIMES = ("tpu-vm-pt-", "tpu-vm-v4-pt-", "tpu-vm-base", "tpu-vm-v4-base")
"""Prefixes of versions that are no longer in Google's table: PyTorch's (tpu-vm-pt-2.1) and JAX's (tpu-vm-base)."""

_TENSORFLOW = re.compile(r"tpu-vm-tf-(\d{1,3})\.(\d{1,3})\.(\d{1,3})(-pod)?(-pjrt|-se|-v4)?", re.ASCII)
_NEW = ("tpu-v5litepod", "tpu-v5p", "tpu-v6e")


def runtime(name: str, accelerator_type: str, field: str = "runtime_version") -> list[Finding]:
    of = find_slice(accelerator_type)
    own = of.generation.runtime if of else None
    if of is None or own is None or name == own.name:
        return []
    if found := _TENSORFLOW.fullmatch(name):
        return _tensorflow(found, of, field)
    if name.startswith(OLD_RUNTIMES):
        message = f'is "{name}", which is superseded'
        return [OLD.finding(field, message, f"use {own.name} and install the framework", own.name)]
    return _other(name, own.name, of, field)


def _other(name: str, own: str, of: Slice, field: str) -> list[Finding]:
    for generation in GENERATIONS:
        if generation.runtime is None or generation.runtime.name != name:
            continue
        if generation.accelerator in _NEW:
            message = f'is "{name}", which is that of {generation.product}, not of {of.name}'
            return [GENERATION.finding(field, message, f"use {own}")]
        return [BASE.finding(field, f'is "{name}", which is for v4 and older, not for {of.name}', f"use {own}")]
    message = f'is "{name}", which is not in the table of software versions'
    return [UNKNOWN.finding(field, message, f"use {own}, or make sure that it exists")]


def _tensorflow(found: re.Match[str], of: Slice, field: str) -> list[Finding]:
    new = of.generation.accelerator in _NEW
    version = (int(found[1]), int(found[2]), int(found[3]))
    number = ".".join(found.group(1, 2, 3))
    pod, device = "-pod" if of.multi_host else "", found[5] or ""
    if new and version < (2, 15, 0):
        message = f'is "{found[0]}", and {of.name} needs TensorFlow 2.15.0 or later'
        return [TENSORFLOW.finding(field, message, f"use tpu-vm-tf-2.16.1{pod}-pjrt")]
    if version >= (2, 15, 0) and (device not in ("-pjrt", "-se") or (new and device != "-pjrt")):
        message = f'is "{found[0]}", which does not end in {"-pjrt" if new else "-pjrt or -se"}'
        return [TENSORFLOW.finding(field, message, f"use tpu-vm-tf-{number}{pod}-pjrt")]
    if (found[4] or "") == pod:
        return []
    hosts = f"{of.hosts} hosts" if of.multi_host else "one host"
    message = f'is "{found[0]}", and {of.name} has {hosts}'
    return [POD.finding(field, message, f"use tpu-vm-tf-{number}{pod}{device}")]
