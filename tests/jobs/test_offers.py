"""What could run a job where, and what it costs there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel import cost
from accel.catalog.prices import price
from accel.catalog.spot import interruption
from accel.contract.targets import AwsBatchEnvironment, AwsBatchTarget, LocalTarget
from accel.diagnostics.errors import BadInputs
from jobs.backends.registry import of_target
from jobs.client import cost as job_cost
from jobs.client.offers import NO_BAND, cheapest, decide
from jobs.client.targets import Entry
from jobs.model.job import Job
from tests.jobs.backends.aws_batch_target import make_target
from tests.jobs.conftest import ROOT
from tests.support.speed import CpuTime

HOUR = 3600


def environment(capacity: str, *types: str, **changes: Any) -> AwsBatchEnvironment:
    values = {"name": capacity, "arn": "a", "capacity": capacity, "instance_types": list(types)}
    return AwsBatchEnvironment(**{**values, "max_vcpus": 192, "disk_gib": 200, **changes})


def queue(*environments: AwsBatchEnvironment, **changes: Any) -> AwsBatchTarget:
    return make_target(environments=list(environments), **changes)


SPOT = queue(environment("spot", "g5.8xlarge"), environment("on-demand", "g5.8xlarge"))
STEADY = queue(environment("on-demand", "g5.8xlarge"))
LARGE = queue(environment("on-demand", "p4d.24xlarge"))
TOO_SMALL = queue(environment("on-demand", "g5.xlarge"))


def entries(**targets: AwsBatchTarget | LocalTarget | None) -> dict[str, Entry]:
    kinds = {name: target.kind if target else "slurm" for name, target in targets.items()}
    return {name: Entry(name, kinds[name], each, None if each else "is newer") for name, each in targets.items()}


def job(**fields: Any) -> Job:
    return Job(**{"name": "a", "command": ["true"], "timeout_s": 10 * HOUR, **fields})


ALL = entries(
    large=LARGE, newer=None, steady=STEADY, spot=SPOT, small=TOO_SMALL, local=LocalTarget(root=str(Path.cwd()))
)


def test_the_cheapest_is_first_and_this_machine_last() -> None:
    found = decide(job(), ALL)
    assert [offer.target for offer in found.offers] == ["spot", "steady", "large", "local"]
    assert [each.target for each in found.rejections] == ["newer", "small"]


def test_reasons_are_those_of_submit() -> None:
    (_, small) = decide(job(), ALL).rejections
    with pytest.raises(BadInputs) as caught:
        of_target("small", TOO_SMALL).render(job(), "a-1", "0" * 64)
    assert list(small.reasons) == caught.value.messages


def test_spot_is_expected_with_its_interruptions() -> None:
    paid, band = price("aws", "us-east-1", "g5.8xlarge"), interruption("us-east-1", "g5.8xlarge")
    assert paid.spot and paid.on_demand and band and band.band == ">20%"
    (offer,) = decide(job(tasks=3), entries(spot=SPOT)).offers
    assert offer.expected == pytest.approx(paid.spot * 3 * cost.spot_hours(10, 0.2, None))
    assert offer.on_demand == pytest.approx(paid.on_demand * 30)
    assert (offer.capacity, offer.machine, offer.environment) == ("spot", "g5.8xlarge", "spot")
    (saved,) = decide(job(tasks=3, env={"CHECKPOINT_DIR": "/data"}), entries(spot=SPOT)).offers
    assert saved.expected == pytest.approx(paid.spot * 3 * cost.spot_hours(10, 0.2, 0.5))
    assert saved.expected and offer.expected and saved.expected < offer.expected


def test_a_spot_price_that_is_not_known_is_not_zero() -> None:
    assert price("aws", "us-east-1", "g5.2xlarge").spot is None
    (offer,) = decide(job(), entries(spot=queue(environment("spot", "g5.2xlarge")))).offers
    assert offer.expected == offer.on_demand == pytest.approx(12.12)
    assert any("no Spot price is known" in note for note in offer.notes)


def test_without_a_band_its_worst_edge_is_assumed() -> None:
    (offer,) = decide(job(), entries(spot=queue(environment("spot", "p4d.24xlarge"), region="us-east-1"))).offers
    if interruption("us-east-1", "p4d.24xlarge") is None:
        assert offer.repeats == pytest.approx(cost.repeats(NO_BAND, 10))
    assert offer.repeats > 0


def test_a_region_younger_than_the_catalogue_is_unknown_and_after_the_rest() -> None:
    young = queue(environment("on-demand", "g5.8xlarge"), region="us-north-9")
    found = decide(job(), entries(young=young, large=LARGE))
    assert [offer.target for offer in found.offers] == ["large", "young"]
    assert found.offers[1].expected is None and any("us-north-9" in note for note in found.offers[1].notes)


def test_cheapest_does_not_mean_this_machine_unless_it_is_all_there_is() -> None:
    local = LocalTarget(root=str(Path.cwd()))
    assert cheapest(job(), ALL)[0].target == "spot"
    assert cheapest(job(), entries(local=local))[0].target == "local"
    with pytest.raises(BadInputs, match=r"g5\.xlarge"):
        cheapest(job(), entries(small=TOO_SMALL, local=local))


def test_worst_is_price_times_timeout_times_attempts_times_tasks() -> None:
    found = job_cost.of(job(tasks=4, retries=1), "spot", SPOT)
    on_demand = price("aws", "us-east-1", "g5.8xlarge").on_demand
    assert on_demand and found.worst == pytest.approx(on_demand * 10 * 2 * 4)
    assert not found.at_least and found.attempts == 2
    assert found.environments[0].range("spot") != found.environments[0].range("on-demand")


def test_without_a_timeout_it_is_unbounded() -> None:
    found = job_cost.of(job(timeout_s=None), "spot", SPOT)
    assert found.worst is None and any(note.startswith("unbounded") for note in found.notes)


def test_a_type_that_nobody_knows_makes_it_at_least() -> None:
    found = job_cost.of(job(), "q", queue(environment("on-demand", "g5.8xlarge", "x9.large")))
    assert found.worst and found.at_least and any("x9.large" in note for note in found.notes)


def test_a_type_with_a_spot_price_only_makes_the_worst_at_least() -> None:
    paid = price("aws", "us-east-1", "p5e.48xlarge")
    found = job_cost.of(job(), "q", queue(environment("spot", "p5e.48xlarge"), region="us-east-1"))
    assert paid.on_demand is None and found.at_least
    assert (found.worst is None) == (paid.spot is None)


def test_another_target_under_the_same_name_is_judged_anew() -> None:
    assert decide(job(), entries(q=SPOT)).offers[0].capacity == "spot"
    assert decide(job(), entries(q=STEADY)).offers[0].capacity == "on-demand"


def test_a_new_job_is_decided_quickly() -> None:
    many = {f"q{i}": Entry(f"q{i}", "aws-batch", (SPOT, STEADY)[i % 2]) for i in range(10)}
    decide(job(), many)
    with CpuTime() as cpu:
        for size in range(20):
            assert len(decide(job(memory_mib=20000 + size), many).offers) == 10
    assert cpu.seconds / 20 < 0.01


def test_deciding_again_is_quick() -> None:
    many = {f"q{i}": Entry(f"q{i}", "aws-batch", each) for i in range(4) for each in (SPOT, STEADY, LARGE)}
    decide(job(), many)
    with CpuTime() as cpu:
        for _ in range(100):
            decide(job(), many)
    assert cpu.seconds / 100 < 0.001


# The commands

JOB = "name: a\ncommand: ['true']\naccelerator: {count: 1}\ntimeout_s: 1h\n"


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a job and targets."""
    (home / "j.yaml").write_text(JOB)
    documents = {
        name: target.model_dump(mode="json", by_alias=True)
        for name, target in (("spot", SPOT), ("large", LARGE), ("small", TOO_SMALL))
    }
    (home / "targets.json").write_text(json.dumps(documents))
    monkeypatch.setenv("ACCEL_TARGETS", "targets.json")
    return home


def test_offers(here: Path, invoke: Callable[..., Result]) -> None:
    result = invoke("offers", "j.yaml")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["TARGET", "spot", "large", "local"]
    assert "cannot run it: small: memory_mib" in result.stderr or "cannot run it: small: cpus" in result.stderr
    found = json.loads(invoke("offers", "j.yaml", "-o", "json").stdout)
    assert [(row["target"], row["can_run"]) for row in found][-1] == ("small", False)
    assert found[0]["expected"] < found[0]["on_demand"] < found[0]["worst"]
    assert "ENVIRONMENT" in invoke("offers", "j.yaml", "-o", "wide").stdout
    assert invoke("offers", "j.yaml", "--gpu", "a100:8", "-o", "id").stdout.split() == ["large", "local"]


@pytest.mark.parametrize(
    "line, fragment",
    [
        (["offers"], "FILE or --gpu is missing"),
        (["offers", "j.yaml", "--region", "us-east-1"], "--region: for the catalogue only"),
        (["cost", "j.yaml", "--to", "spto"], "did you mean spot?"),
        (["cost", "j.yaml", "--to", "small"], "MiB"),
        (["cost"], "FILE is missing"),
    ],
)
def test_wrong_arguments(line: list[str], fragment: str, here: Path, invoke: Callable[..., Result]) -> None:
    result = invoke(*line)
    assert (result.exit_code, result.stdout) == (2, "") and fragment in result.stderr, result.stderr


def test_cost(here: Path, invoke: Callable[..., Result]) -> None:
    result = invoke("cost", "j.yaml", "--to", "spot")
    assert result.exit_code == 0 and "spot: worst case: 7.34 USD" in result.stdout
    assert "large: worst case: " in invoke("cost", "j.yaml").stdout
    (row,) = json.loads(invoke("cost", "j.yaml", "--to", "spot", "-o", "json").stdout)
    assert row["worst"] == pytest.approx(2.448 * 3) and row["attempts"] == 3
    (here / "j.yaml").write_text(JOB.replace("timeout_s: 1h\n", ""))
    unbounded = invoke("cost", "j.yaml", "--to", "spot")
    assert unbounded.exit_code == 0 and "worst case: unbounded" in unbounded.stdout


def test_submit_to_the_cheapest_says_why(here: Path, invoke: Callable[..., Result]) -> None:
    result = invoke("submit", "j.yaml", "--to", "cheapest", "--dry-run")
    assert result.exit_code == 0 and json.loads(result.stdout)["target"] == "spot"
    assert result.stderr.startswith("cheapest: spot: ") and "then large" in result.stderr
    refused = invoke("submit", "j.yaml", "--to", "cheapest", "--dry-run", "--set", "accelerator.count=16")
    assert refused.exit_code == 2 and "error: spot: accelerator.count: is 16" in refused.stderr


def test_a_target_of_that_name_is_meant_first(here: Path, invoke: Callable[..., Result]) -> None:
    documents = {"cheapest": LARGE.model_dump(mode="json", by_alias=True)}
    (here / "targets.json").write_text(json.dumps(documents))
    result = invoke("submit", "j.yaml", "--to", "cheapest", "--dry-run")
    assert json.loads(result.stdout)["target"] == "cheapest" and "cheapest: " not in result.stderr.split("warning")[0]


@pytest.mark.parametrize("verb", ["offers", "cost"])
def test_no_sdk_is_imported(verb: str, here: Path) -> None:
    command = [sys.executable, "-P", "-X", "importtime", "-m", "jobs", verb, "j.yaml"]
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "ACCEL_TARGETS": "targets.json"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "pydantic" in loaded and not loaded & {"boto3", "botocore", "pulumi", "google"}
