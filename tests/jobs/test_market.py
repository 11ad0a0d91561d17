"""What the clouds sell with a kind of accelerator."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from accel.catalog import machine, price
from accel.catalog.prices import Price
from accel.diagnostics.errors import BadInput
from jobs.client import market
from jobs.client.market import list_machines, parse_gpu
from tests.support.speed import CpuTime


def test_the_market_is_sorted_by_price() -> None:
    found = list_machines("nvidia-a100-80gb", 8)
    assert {each.cloud for each in found} == {"aws", "gcp"} and {each.count for each in found} == {8}
    least = [min(usd for usd in (each.on_demand, each.spot) if usd) for each in found if each.on_demand or each.spot]
    assert least == sorted(least) and found[-1].on_demand is None and found[-1].why_unknown
    assert {each.count for each in list_machines("nvidia-a100-80gb", None)} == {1, 2, 4, 8}
    assert {each.region for each in list_machines("nvidia-a100-80gb", 8, "gcp", "us-central1")} == {"us-central1"}


def test_a_capacity_ranks_by_its_own_price_and_drops_nothing() -> None:
    spot, steady = list_machines("nvidia-l4", 1, capacity="spot"), list_machines("nvidia-l4", 1, capacity="on-demand")
    assert set(spot) == set(steady) == set(list_machines("nvidia-l4", 1))
    for found, usd in ((spot, [each.spot for each in spot]), (steady, [each.on_demand for each in steady])):
        known = [value for value in usd if value is not None]
        assert known == sorted(known) and usd[: len(known)] == known, found[0]
    assert spot[-1].spot is None and spot[-1].why_unknown


SMALL_A3 = ("a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g")


@pytest.mark.parametrize("machine", SMALL_A3)
def test_what_is_not_sold_on_demand_is_left_out_and_said(
    machine: str, home: Path, invoke: Callable[..., Result]
) -> None:
    line = ("offers", "--gpu", f"h100-80gb:{machine[-2]}", "--limit", "100")
    told = invoke(*line, "--capacity", "on-demand", "--cloud", "aws" if machine == SMALL_A3[0] else "gcp")
    shown = {each.machine for each in list_machines("nvidia-h100-80gb", int(machine[-2]), capacity="spot")}
    assert machine in shown and machine not in told.stdout
    if machine == SMALL_A3[0]:
        assert (told.exit_code, told.stderr.count("Spot or flex-start")) == (0, 0), "AWS sells p5.4xlarge on demand"
        told = invoke(*line, "--capacity", "on-demand")
        assert told.exit_code == 0 and "p5.4xlarge" in told.stdout and machine not in told.stdout
    else:
        assert told.exit_code == 2
    assert f"{machine}: capacity: is on-demand, and {machine} is available as Spot or flex-start only" in told.stderr


def test_what_is_rarely_available_on_demand_has_a_note() -> None:
    (ultra, *_), (b200, *_) = (
        list_machines(kind, 8, "gcp", capacity="on-demand") for kind in ("nvidia-h200-141gb", "nvidia-b200")
    )
    assert all(any("rarely" in note for note in each.notes) for each in (ultra, b200))
    assert all(each.notes == () for each in list_machines("nvidia-h200-141gb", 8, capacity="spot"))
    assert any("Spot or flex-start only" in note for note in list_machines("nvidia-h100-80gb", 1, "gcp")[0].notes)


def test_what_is_too_small_is_left_out() -> None:
    every, large = list_machines("nvidia-l4", 1), list_machines("nvidia-l4", 1, cpus=16, memory_gib=100)
    assert set(large) == {each for each in every if each.vcpus >= 16 and each.memory_gib >= 100}
    assert {"g6.8xlarge", "gr6.4xlarge", "g2-standard-32"} < {each.machine for each in large}
    assert list_machines("nvidia-l4", 1, region="us-central1", cpus=33) == []
    assert list_machines("nvidia-l4", 1, cpus=16, memory_gib=64.0) != list_machines(
        "nvidia-l4", 1, cpus=16, memory_gib=64.1
    )
    with pytest.raises(BadInput, match=r"no machine .* has 65 vCPUs and 8 GiB; the largest: 64, 256 GiB"):
        list_machines("nvidia-l4", 1, cpus=65, memory_gib=8)


def test_attached_gpus_cost_what_they_and_their_host_do() -> None:
    found = {each.machine: each for each in list_machines("nvidia-tesla-v100", 2, "gcp", "us-central1")}
    both = found["n1-standard-8+nvidia-tesla-v100x2"]
    gpus, host = (price("gcp", "us-central1", name) for name in ("n1+nvidia-tesla-v100x2", "n1-standard-8"))
    assert gpus.on_demand and host.on_demand and both.on_demand == pytest.approx(gpus.on_demand + host.on_demand)
    assert gpus.spot and host.spot and both.spot == both.spot_low == pytest.approx(gpus.spot + host.spot)
    assert both.vcpus == machine("gcp", "n1-standard-8").vcpus and both.confidence == "medium"
    assert set(both.dates) == {gpus.on_demand_date, gpus.spot_date, host.on_demand_date, host.spot_date}
    # Two V100 take at most 24 vCPUs.
    assert "n1-standard-16+nvidia-tesla-v100x2" in found and "n1-standard-32+nvidia-tesla-v100x2" not in found


def test_a_part_without_a_price_leaves_the_whole_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_spot(cloud: str, region: str, name: str) -> Price:
        return replace(price(cloud, region, name), spot=None, spot_low=None, why_unknown=f"no Spot price of {name}")

    monkeypatch.setattr(market, "price", no_spot)
    monkeypatch.setattr(market, "_ranked", market._ranked.__wrapped__)
    every = list_machines("nvidia-tesla-p4", 4, capacity="spot")
    assert every and {each.spot for each in every} == {each.spot_low for each in every} == {None}
    assert every[0].on_demand and every[0].why_unknown == "no Spot price of n1-highmem-16"


def test_asking_again_is_quick() -> None:
    list_machines("nvidia-l4", 1, capacity="spot")
    with CpuTime() as cpu:
        for _ in range(100):
            list_machines("nvidia-l4", 1, region="us-east-1", cpus=8, capacity="spot")
    assert cpu.seconds / 100 < 0.001


def test_kinds_and_counts_as_people_write_them() -> None:
    assert parse_gpu("a100-80gb:8") == ("nvidia-a100-80gb", 8)
    assert parse_gpu("H100") == ("nvidia-h100-80gb", None)
    assert parse_gpu("l4:0.125") == ("nvidia-l4", 0.125)
    for text in (
        "l4:1.5",
        "l4:0.0",
        "l4:-1",
        "a100-80gb:",
        "a100-80gb:0",
        "a100-80gb:x",
        ":8",
        "",
        "a100-80gb:99999999",
    ):
        with pytest.raises(BadInput, match="--gpu: "):
            parse_gpu(text)


def test_offers_of_the_catalogue(home: Path, invoke: Callable[..., Result]) -> None:
    result = invoke("offers", "--gpu", "l4:1", "--cloud", "aws", "--limit", "3")
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 4
    assert result.stderr.startswith("Shown 3 of ")
    rows = json.loads(invoke("offers", "--gpu", "a100-80gb:8", "-o", "json").stdout)
    assert rows[0]["machine"] and rows[0]["dates"] and rows[0]["confidence"]
    line = ("--gpu", "t4:1", "--cpus", "4", "--memory-gib", "15", "--capacity", "on-demand", "--limit", "1")
    (row,) = json.loads(invoke("offers", *line, "-o", "json").stdout)
    assert (row["machine"], row["vcpus"], row["memory_gib"]) == ("g4dn.xlarge", 4, 16)
    assert len(json.loads(invoke("offers", "--gpu", "l4:1", "-o", "json").stdout)) == 20


@pytest.mark.parametrize(
    "line, said",
    [
        ("--best-for --limit 2", "--best-for: is alone, or with --cloud"),
        ("j.yaml --limit 2", "accel-jobs offers: --limit: for the catalogue only; with FILE the targets are asked"),
        ("j.yaml --region us-east-1 --limit 2", "accel-jobs offers: --region, --limit: for the catalogue only"),
    ],
)
def test_a_limit_is_of_the_catalogue(line: str, said: str, home: Path, invoke: Callable[..., Result]) -> None:
    result = invoke("offers", *line.split())
    assert result.exit_code == 2 and said in result.stderr


@pytest.mark.parametrize(
    "line, fragment",
    [
        (["a100-80gb:16"], "16 is not a count that any machine has; 1, 2, 4, 8"),
        (["a100-80gbb:8"], "nearest: a100-80gb"),
        (["l4", "--region", "us-esat-1"], "nearest: us-east-1"),
        (["l4", "--cloud", "azure"], "unknown value azure"),
        (["l4", "--limit", "0"], "not in the range"),
        (["l4", "--cpus", "0"], "not in the range"),
        (["l4", "--capacity", "spto"], "did you mean spot?"),
        (["l4:1", "--memory-gib", "300"], "no machine with such GPUs has 300 GiB; the largest: 64, 256 GiB"),
    ],
)
def test_wrong_arguments(line: list[str], fragment: str, home: Path, invoke: Callable[..., Result]) -> None:
    result = invoke("offers", "--gpu", *line)
    assert (result.exit_code, result.stdout) == (2, "") and fragment in result.stderr, result.stderr


@pytest.mark.parametrize(
    "region, words",
    [
        ("eu-west-3", '"eu-west-3" has no such machine; nearest: eu-central-1, '),
        ("us-central1-a", "us-central1-a is a zone; the region is us-central1"),
        ("nowhere", 'unknown region "nowhere"'),
    ],
)
def test_a_region_without_such_machines(region: str, words: str, home: Path, invoke: Callable[..., Result]) -> None:
    refused = invoke("offers", "--gpu", "a100-80gb:8", "--region", region)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: --region: ") and words in refused.stderr


def test_a_region_whose_machines_are_left_out(home: Path, invoke: Callable[..., Result]) -> None:
    """One H100 is sold in Europe by Google alone, and not on demand."""
    refused = invoke("offers", "--gpu", "h100-80gb:1", "--capacity", "on-demand", "--region", "europe-west4")
    assert refused.exit_code == 2
    error, hint = refused.stderr.splitlines()
    assert error.startswith('error: --region: "europe-west4" has no such machine; nearest: ')
    assert hint.startswith("hint: left out: a3-highgpu-1g: ") and "Spot or flex-start only" in hint


def test_a_share_of_a_gpu_is_seen_as_one(home: Path, invoke: Callable[..., Result]) -> None:
    header, row = invoke("offers", "--gpu", "l4:0.125", "--limit", "1").stdout.splitlines()
    assert dict(zip(header.split(), row.split(), strict=False))["COUNT"] == "0.125"


def test_what_each_gpu_is_best_for_and_how_much_memory_it_has(invoke: Callable[..., Result]) -> None:
    shown = invoke("offers", "--best-for")
    lines = {line.split()[0]: line for line in shown.stdout.splitlines()}
    assert shown.exit_code == 0 and "80 GiB" in lines["nvidia-h100-80gb"]
    assert "aws, gcp" in lines["nvidia-h100-80gb"] and "large training, fine-tuning" in lines["nvidia-h100-80gb"]
    assert "inference, small training" in lines["nvidia-tesla-t4"] and "1 to 8" in lines["nvidia-tesla-t4"]
    found = json.loads(invoke("offers", "--best-for", "-o", "json").stdout)
    assert [each["gpu_memory_gib"] for each in found] == sorted(
        (each["gpu_memory_gib"] for each in found), reverse=True
    )
    assert all(each["source"].startswith("https://") for each in found if each["best_for"])
    google = json.loads(invoke("offers", "--best-for", "--cloud", "gcp", "-o", "json").stdout)
    assert {cloud for each in google for cloud in each["clouds"]} == {"gcp"} and len(google) < len(found)
    for beside in (["job.yaml"], ["--gpu", "t4"], ["--region", "us-east-1"]):
        refused = invoke("offers", "--best-for", *beside)
        assert (refused.exit_code, refused.stderr.splitlines()[0]) == (
            2,
            "error: --best-for: is alone, or with --cloud",
        )


def test_what_is_sold_has_the_memory_of_its_gpus(invoke: Callable[..., Result]) -> None:
    assert {each.gpu_memory_gib for each in list_machines("nvidia-h200-141gb", None)} == {141}
    head, row = invoke("offers", "--gpu", "h200:8", "--limit", "1").stdout.splitlines()[:2]
    assert head.split()[4] == "GPU_MEMORY" and row.split()[4] == "141"


@pytest.mark.parametrize("name", ["v5litepod-8", "v5e-8", "v4-8"])
def test_a_slice_is_listed_by_its_name(name: str, home: Path, invoke: Callable[..., Result]) -> None:
    rows = json.loads(invoke("offers", "--gpu", name, "-o", "json").stdout)
    assert {row["machine"] for row in rows} == {"v4-8" if name == "v4-8" else "v5litepod-8"}
    assert rows[0]["on_demand"] and rows[0]["count"] == (4 if name == "v4-8" else 8)
    assert bool(rows[0]["vcpus"]) != bool(rows[0]["notes"])
    assert invoke("offers", "--gpu", "v5e-9").exit_code == 2
