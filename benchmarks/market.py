"""Which machine is the cheapest for so many accelerators: our choice against that of SkyPilot's optimizer, with the
same prices (sky_catalog.py) and questions (questions.py), in one process each. Both answer with the least price an hour
over the machines with exactly those accelerators. SkyPilot is asked through its library, without its command and its
server; ours through the command where a new process is timed. `python -m benchmarks.market QUESTIONS ANSWERS` answers
ours in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from jobs.client.market import not_sold

from .measure import PYTHON, ROOT, Failed, Line, medians_s, run
from .questions import COUNT, Answer, Question, answer, askable, questions, read_answers
from .sky import Sky

OFFERS = (PYTHON, "-m", "jobs", "offers", "--gpu", "a100-80gb:8")
COLD = Question("nvidia-a100-80gb", 8, "on-demand")
"""The same in the words of SkyPilot."""
COLD_LIMIT_MS = 100
WARM_LIMIT_MS = 0.1
RUNS = 3


def measure(scratch: Path) -> Iterator[Line]:
    """Measure ours also where SkyPilot cannot be had; raise Failed then."""
    asked = questions()
    ours, (first, again) = _ours(scratch, asked)
    try:
        sky = Sky(scratch)
    except Failed as failure:
        yield from _times(1000 * medians_s([(OFFERS, ROOT)], RUNS)[0], again)
        raise Failed(f"SkyPilot is missing: {failure}") from None
    theirs, (sky_first, sky_again) = sky.ask(asked)
    offers_s, sky_s = medians_s([(OFFERS, ROOT), (sky.command("cold", [COLD], 1), ROOT)], RUNS)
    yield from _times(1000 * offers_s, again, 1000 * sky_s, sky_again)
    yield Line("the same, each asked for the first time", first, "ms", "SkyPilot's", sky_first)
    yield from compare(asked, ours, theirs)
    for rule, count in sorted(askable()[1].items()):
        yield Line(f"kinds with counts not asked for: {rule}", count, "")


def _times(cold: float, warm: float, sky_cold: float | None = None, sky_warm: float | None = None) -> Iterator[Line]:
    peer = "SkyPilot's import and first decision"
    yield Line("jobs offers --gpu a100-80gb:8, a new process", cold, "ms", peer, sky_cold, COLD_LIMIT_MS)
    name = f"choice in a running process, mean of {COUNT}"
    yield Line(name, warm, "ms", "SkyPilot's", sky_warm, WARM_LIMIT_MS)


def compare(asked: Sequence[Question], ours: Sequence[Answer], theirs: Sequence[Answer]) -> Iterator[Line]:
    dearer, same, cheaper = 0, 0, Counter[str]()
    alone, they_alone, neither, refused = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for question, our, their in zip(asked, ours, theirs, strict=True):
        if our.usd is None or their.usd is None:
            if our.usd is not None:
                alone[their.why_none] += 1
            elif their.usd is not None:
                reasons = not_sold(question.kind, question.count, None, question.capacity)
                reason = next((each for each in reasons if each.startswith(f"{their.machine}: ")), "")
                (refused if reason else they_alone)[reason or our.why_none] += 1
            else:
                neither[our.why_none] += 1
        elif abs(our.usd - their.usd) <= 1e-9 * their.usd:
            same += 1
        elif our.usd > their.usd:
            dearer += 1
        else:
            # SkyPilot has least sizes of its own for the host of attached GPUs, where the question has none.
            open_host = "+" in our.machine and None in (question.cpus, question.memory_gib)
            cheaper["SkyPilot sizes the host of attached GPUs itself" if open_host else "other"] += 1
    both = same + dearer + cheaper.total()
    yield Line(f"choices dearer than SkyPilot's, of {both} that both made", dearer, "", limit=0)
    yield Line("choices as dear", same, "")
    yield Line(f"choices cheaper{_reasons(cheaper)}", cheaper.total(), "")
    yield Line(f"questions answered by SkyPilot alone{_reasons(they_alone)}", they_alone.total(), "", limit=0)
    yield Line(f"answered by SkyPilot with a machine that is not sold so{_reasons(refused)}", refused.total(), "")
    yield Line(f"questions answered by us alone{_reasons(alone)}", alone.total(), "")
    yield Line(f"questions answered by neither{_reasons(neither)}", neither.total(), "")


def _reasons(counted: Counter[str]) -> str:
    return f" ({'; '.join(f'{count} {why}' for why, count in counted.most_common())})" if counted else ""


def _ours(scratch: Path, asked: Sequence[Question]) -> tuple[list[Answer], list[float]]:
    questions, answers = scratch / "questions.json", scratch / "answers.json"
    questions.write_text(json.dumps([asdict(each) for each in asked]))
    run((PYTHON, "-m", "benchmarks.market", questions, answers))
    return read_answers(answers)


def _answer_all(asked: Path, answers: Path) -> None:
    every = [Question(**each) for each in json.loads(asked.read_text())]
    rounds: list[list[float]] = []
    found: list[Answer] = []
    for _ in range(2):
        seconds: list[float] = []
        found = []
        for each in every:
            started = time.perf_counter()
            found.append(answer(each))
            seconds.append(time.perf_counter() - started)
        rounds.append(seconds)
    answers.write_text(json.dumps({"answers": [asdict(each) for each in found], "rounds_s": rounds}))


if __name__ == "__main__":
    _answer_all(Path(sys.argv[1]), Path(sys.argv[2]))
