"""Questions about accelerators, made up the same way each time, and our answer to one."""

from __future__ import annotations

import json
import random
import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.catalog import Machine, NoMachine, accelerators, hosts, machines_for, prices_for, regions
from accel.diagnostics.errors import BadInput
from jobs.client.market import list_machines

SEED = 20261121
COUNT = 200
CAPACITIES = ("spot", "on-demand")


@dataclass(frozen=True)
class Question:
    """So many of a kind of accelerator as `spot` or `on-demand`, with at least so many vCPUs and GiB, in a region."""

    kind: str
    count: int
    capacity: str
    cpus: int | None = None
    memory_gib: int | None = None
    region: str | None = None


@dataclass(frozen=True)
class Answer:
    """The machine with the least price, USD an hour; or why there is none."""

    usd: float | None = None
    cloud: str = ""
    region: str = ""
    machine: str = ""
    why_none: str = ""


def counts(kind: str) -> tuple[float, ...]:
    """Return the numbers of an accelerator that some machine has."""
    try:
        machines_for(kind, 0)
    except NoMachine as none:
        return none.counts
    raise AssertionError(f"a machine has 0 of {kind}")


def askable() -> tuple[list[tuple[str, int]], Counter[str]]:
    """Return kinds with the counts that both can be asked for, and how many such pairs each rule leaves out."""
    asked: list[tuple[str, int]] = []
    left_out: Counter[str] = Counter()
    for kind, accelerator in accelerators().items():
        for count in counts(kind):
            if accelerator.is_tpu:
                left_out["TPU hosts, which are priced by the slice"] += 1
            elif not accelerator.skypilot_name:
                left_out["kinds that SkyPilot has no name for"] += 1
            elif count != int(count):
                left_out["shares of one GPU, which are not compared"] += 1
            elif not any(_priced(each, capacity) for each in machines_for(kind, count) for capacity in CAPACITIES):
                left_out["kinds and counts without any price"] += 1
            else:
                asked.append((kind, int(count)))
    return asked, left_out


def _priced(machine: Machine, capacity: str) -> list[str]:
    """Return the regions where a machine has a price."""
    prices = prices_for(machine.cloud, machine.name).items()
    return [region for region, price in prices if (price.spot if capacity == "spot" else price.on_demand) is not None]


def questions() -> list[Question]:
    """Return questions, no two alike, each for a size that some machine has, or a part of one."""
    chance = random.Random(SEED)
    pairs = askable()[0]
    found: dict[Question, None] = {}
    while len(found) < COUNT:
        kind, count = chance.choice(pairs)
        machine = chance.choice(machines_for(kind, count))
        capacity = chance.choice(CAPACITIES)
        somewhere = regions(machine.cloud)
        known = _priced(machine, capacity) or somewhere
        size = chance.choice(hosts(machine)) if machine.is_attachment else machine
        part = chance.choice((1, 2, 4))
        question = Question(
            kind,
            count,
            capacity,
            chance.choice((None, max(1, size.vcpus // part))),
            chance.choice((None, max(1, size.memory_mib // 1024 // part))),
            chance.choice((None, None, chance.choice(known), chance.choice(known), chance.choice(somewhere))),
        )
        found[question] = None
    return list(found)


def answer(question: Question) -> Answer:
    try:
        ranked = list_machines(
            question.kind,
            question.count,
            region=question.region,
            cpus=question.cpus or 0,
            memory_gib=question.memory_gib or 0,
            capacity=question.capacity,
        )
    except BadInput as fault:
        return Answer(why_none=fault.message)
    if not ranked:
        return Answer(why_none="not offered there")
    first = ranked[0]
    usd = first.spot if question.capacity == "spot" else first.on_demand
    if usd is None:
        return Answer(why_none="no price is known")
    return Answer(usd, first.cloud, first.region, first.machine)


def read_answers(path: Path) -> tuple[list[Answer], list[float]]:
    """Return answers, and the mean milliseconds of one in each round."""
    found: dict[str, Any] = json.loads(path.read_text())
    rounds = [1000 * statistics.mean(seconds) for seconds in found["rounds_s"]]
    return [Answer(**each) for each in found["answers"]], rounds
