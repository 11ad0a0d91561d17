"""`jobs exec --check`: what the machines of a job have, a row each, and what is wrong with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accel.console.errors import say
from accel.console.output import show
from accel.diagnostics.errors import JobFailed, JobsError

from ..client.fanout import everywhere
from ..client.machine_check import ask, command, judge
from ..client.machine_check.judge import free_share

if TYPE_CHECKING:
    from ..backends.base import Exec, JobRef, Places
    from ..client.machine_check import MachineReport

COLUMNS = ("node", "host", "devices", "driver", "cuda", "nccl", "libtpu", "disk_free", "skew_s", "verdict")
WIDE = (*COLUMNS[:-1], "torch", "jax", "memory_gib", "shm_gib", "ecc_errors", "xids", "python", "verdict")


def check(backend: "Exec", ref: "JobRef", places: "Places", numbers: Sequence[int], host: bool, form: str) -> None:
    """Raises JobFailed where something is wrong with a machine, or nothing can be learnt of it."""

    def work(number: int) -> "MachineReport":
        task = number if places.word else None
        return ask(lambda streams: backend.run(ref, command(), streams, task=task, host=host))

    rows: list[Mapping[str, Any]] = []
    wrong: dict[int, list[str]] = {}
    for number, seen in everywhere(numbers, work).items():
        if isinstance(seen, JobsError):
            wrong[number] = [seen.message]
            rows.append({"node": number, "faults": [seen.message], "verdict": "unknown"})
            continue
        if faults := judge.faults(seen, places):
            wrong[number] = faults
        rows.append(row(number, seen, faults))
    show(rows, form, COLUMNS, WIDE, "node")
    for number, faults in wrong.items():
        say(f"{places.word or 'node'} {number}: {'; '.join(faults)}")
    if wrong:
        raise JobFailed(f"{len(wrong)} of {len(rows)} machines of {ref} are not as they should be")


def row(number: int, seen: "MachineReport", faults: list[str]) -> dict[str, Any]:
    """A machine's own words, and the columns made of them."""
    facts = seen.facts
    names: Counter[str] = Counter(facts.get("gpu_names") or [])
    chips = facts.get("chips")
    disks: dict[str, Any] = facts.get("disks") or {}
    shares = [share for disk in disks.values() if (share := free_share(disk)) is not None]
    cuda = [f"driver {facts['cuda_driver']}"] if facts.get("cuda_driver") else []
    return dict(facts) | {
        "node": number,
        "host": facts.get("hostname"),
        "devices": ", ".join(f"{count} {name}" for name, count in names.items()) or (f"{chips} chips" if chips else ""),
        "cuda": ", ".join([*([str(facts["cuda_runtime"])] if facts.get("cuda_runtime") else []), *cuda]),
        "disk_free": f"{min(shares):.0%}" if shares else None,
        "memory_gib": _gib(facts.get("memory_mib")),
        "shm_gib": _gib(facts.get("shm_mib")),
        "skew_s": seen.skew.estimate_s,
        "faults": faults,
        "verdict": "; ".join(faults) or "ok",
    }


def _gib(mib: Any) -> float | None:
    return None if mib is None else round(mib / 1024, 1)
