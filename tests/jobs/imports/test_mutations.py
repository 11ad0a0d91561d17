"""Documents with a fault somewhere: each is answered at once, with lines that say what is wrong, and with exit code 0
or 2."""

import copy
import cProfile
import json
import random
import resource
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.jobs.imports.sample_files import HERE as SAMPLES
from tests.jobs.imports.test_aws_batch import GIVEN, WHOLE, places
from tests.jobs.imports.test_aws_batch_ecs import ECS
from tests.jobs.imports.test_aws_batch_jobs import JOB as DESCRIBED
from tests.jobs.imports.test_dstack import WHOLE as DSTACK
from tests.jobs.imports.test_golden import CASES, GOLDEN
from tests.jobs.imports.test_kubernetes import SHAPES, WHOLE_JOB
from tests.jobs.imports.test_pasted_batch import DEFINITION, JOB, SUBMIT
from tests.jobs.imports.test_skypilot import WHOLE as SKYPILOT
from tests.jobs.imports.test_slurm import WHOLE as SLURM
from tests.support.soak import SOAK
from tests.support.speed import CpuTime, reference_seconds

EACH = 1250 if SOAK else 24
"""Mutations of a document; with the full counts some 29,000 in all."""
SLOW_S = 2
MEMORY_MIB = 200
SECRET = "hunter2-of-nobody"

FILES: dict[str, str] = {file: kind for kind, file, *_ in CASES.values()}
OF_GOOGLE: dict[str, tuple[str, Any]] = {
    file: (kind, yaml.safe_load((GOLDEN / file).read_text())) for file, kind in FILES.items() if not file.endswith("sh")
}
DOCUMENTS: dict[str, tuple[str, Any]] = OF_GOOGLE | {
    "given.json": ("aws-batch", GIVEN),
    "whole.json": ("aws-batch", WHOLE),
    "job.yaml": ("kubernetes", WHOLE_JOB),
    **{f"{what}.yaml": ("kubernetes", SHAPES[what][0]) for what in ("a job set", "a PyTorchJob", "a TPU of hosts")},
    "sky.yaml": ("skypilot", SKYPILOT),
    "task.dstack.yml": ("dstack", DSTACK),
    "definition.json": ("aws-batch", DEFINITION),
    "ecs.json": ("aws-batch", ECS),
    "described.json": ("aws-batch", {"jobs": [DESCRIBED]}),
}
SCRIPTS = {file: (kind, (GOLDEN / file).read_text()) for file, kind in FILES.items() if file.endswith("sh")} | {
    "slurm.sh": ("slurm", SLURM),
    **{
        file: (kind, (SAMPLES / kind / file).read_text())
        for kind, file in (("slurm", "heredoc.sh"), ("xpk", "list.sh"))
    },
    "submit.sh": (
        "aws-batch",
        f"A=1\n{SUBMIT} --array-properties size=2 \\\n --timeout attemptDurationSeconds=$A\n",
    ),
    "batch.sh": ("google-batch", f"gcloud batch jobs submit n --location us-central1 --config - <<EOF\n{JOB}\nEOF\n"),
}
VALUES: list[Any] = [
    *(None, True, 0, -1, 2**70, 1.5, "", " ", "x" * 500, "5", "-1s", "1e9s", "${X}", "a\nb", "\x07", "://:@", "gs:"),
    *([], {}, [[]], [None], [{}], {"": ""}, {"a.b": 1}, {"a[0]": 1}, ["x", {"y": 1}], [["x"]], {"a": [{"c": []}]}),
]  # fmt: skip


def mutated(document: Any, chance: random.Random) -> str:
    """The document, with one to three things that are wrong with it."""
    changed = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        all_places: list[tuple[Any, Any]] = list(places(changed))
        if not all_places:
            break
        inside, key = chance.choice(all_places)
        how = chance.randrange(7)
        if how == 0:
            del inside[key]
        elif how == 1:
            inside[key] = copy.deepcopy(chance.choice(VALUES))
        elif how == 2:
            inside[key] = [inside[key]] if chance.random() < 0.5 else {str(key): inside[key]}
        elif how == 3 and isinstance(inside, list):
            inside.insert(0, copy.deepcopy(inside[key]))
        elif how == 3:
            inside[f"{key}{chance.choice('sX.[')}"] = copy.deepcopy(inside[key])
        elif how == 4:
            other, at = chance.choice(all_places)
            inside[key] = copy.deepcopy(other[at])
        elif how == 5 and isinstance(inside, dict):
            inside[chance.choice(["", "a.b", "x", "name", "type", "0", "é\n"])] = copy.deepcopy(chance.choice(VALUES))
        elif isinstance(inside[key], str):
            inside[key] = chance.choice([inside[key][1:], inside[key] * 2, inside[key].upper(), f"{inside[key]}:0"])
    if not changed:
        return "{}"
    if chance.random() < 0.3 and (inside := [each for each, _ in places(changed) if isinstance(each, dict)]):
        chance.choice(inside)["API_TOKEN"] = SECRET
    return json.dumps(changed) if chance.random() < 0.5 else yaml.safe_dump(changed)


def mutated_script(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        how = chance.randrange(5)
        if how == 0:
            lines[at] = ""
        elif how == 1:
            lines.insert(at, lines[chance.randrange(len(lines))])
        elif how == 2:
            where = chance.randrange(len(lines[at]) + 1)
            junk = chance.choice(["'", '"', "\\", "$(", "`", "=", ",", " -- ", ";", "^", "${", "\x00", "é"])
            lines[at] = lines[at][:where] + junk + lines[at][where:]
        elif how == 3:
            lines[at] = lines[at].replace("=", chance.choice(["", "==", " ", "=^|^"]), 1)
        else:
            where = chance.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][where:]
    if chance.random() < 0.3:
        lines.insert(chance.randrange(len(lines)), f"export API_TOKEN={SECRET}\n")
    return "".join(lines) or "\n"


@pytest.mark.parametrize("file", [*DOCUMENTS, *SCRIPTS])
def test_every_mutation_is_answered(file: str, home: Any, invoke: Callable[..., Result]) -> None:
    chance = random.Random(f"mutations of {file}")
    kind, given = {**DOCUMENTS, **SCRIPTS}[file]
    most_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + MEMORY_MIB * 1024
    for number in range(EACH):
        text = mutated_script(given, chance) if file in SCRIPTS else mutated(given, chance)
        kinds = [kind] if number % 3 else []
        begun = time.process_time()
        done = invoke("import", *kinds, "-", text=text.encode(errors="surrogatepass"))
        took_s = time.process_time() - begun
        said = f"{number}: {text}\n{done.stderr}"
        assert done.exit_code in (0, 2), said
        assert "unexpected" not in done.stderr, said
        assert bool(done.stdout) == (done.exit_code == 0), said
        assert took_s < SLOW_S or reference_seconds(took_s) < SLOW_S, said
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert bool(errors) == (done.exit_code == 2), said
        assert SECRET not in done.stderr, said
        assert all(line.isprintable() and len(line) < 2000 for line in done.stderr.splitlines()), said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < most_kib


def of_many_fields(kind: str, count: int) -> dict[str, Any]:
    many = {f"k{number}": "v" for number in range(count)}
    return {
        "aws-batch": {**GIVEN, "tags": many, "parameters": many, "x": many},
        "google-batch": {
            "taskGroups": [{"taskSpec": {"runnables": [{}], "environment": {"variables": many}}}],
            "labels": many,
        },
        "vertex": {
            "jobSpec": {"workerPoolSpecs": [{"containerSpec": {"env": [{"name": k, "value": "v"} for k in many]}}]},
            "labels": many,
        },
        "ai-platform": {"trainingInput": {"scaleTier": "BASIC", "x": many}, "labels": many},
        "kubernetes": {**WHOLE_JOB, "metadata": {"name": "a", "labels": many, "annotations": many}, "x": many},
        "skypilot": {"run": "x", "envs": many, "resources": {"labels": many, "x": many}, "file_mounts": many},
        "dstack": {"type": "task", "commands": ["x"], "env": many, "tags": many, "x": many},
    }[kind or "aws-batch"]


@pytest.mark.parametrize(
    "kind", ["aws-batch", "google-batch", "vertex", "ai-platform", "kubernetes", "skypilot", "dstack", ""]
)
def test_a_document_of_many_fields_takes_work_in_proportion(
    kind: str, home: Any, invoke: Callable[..., Result]
) -> None:
    def answered(count: int) -> Result:
        return invoke("import", *([kind] if kind else []), "-", text=json.dumps(of_many_fields(kind, count)))

    def calls(count: int) -> int:
        """How many functions are called, which no machine's speed changes."""
        with cProfile.Profile() as profile:
            done = answered(count)
        assert done.exit_code == 2
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(500) < 7 * calls(100)
    with CpuTime() as cpu:
        assert answered(1500).exit_code == 2
    assert cpu.seconds < SLOW_S
