"""The comparison with SkyPilot, without SkyPilot: same prices, same questions, and honest counts."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from accel.catalog import accelerators, price, prices_for
from benchmarks import market, sky_catalog
from benchmarks.measure import Failed
from benchmarks.questions import COUNT, Answer, Question, answer, askable, questions
from benchmarks.sky import resources
from jobs.client.market import list_machines

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """What SkyPilot would read."""
    home = tmp_path_factory.mktemp("home")
    sky_catalog.write(home)
    paths = (home / sky_catalog.FOLDER).glob("*/*.csv")
    return {path.parent.name: list(csv.DictReader(path.read_text().splitlines())) for path in paths}


def usd(text: str) -> float | None:
    return float(text) if text else None


def test_every_machine_has_the_prices_of_the_catalogue(files: dict[str, Rows]) -> None:
    for cloud in ("aws", "gcp"):
        written = [row for row in files[cloud] if row["InstanceType"]]
        places = {(row["InstanceType"], row["Region"]) for row in written}
        assert len(places) == len(written)
        for row in written:
            known = price(cloud, row["Region"], row["InstanceType"])
            assert (usd(row["Price"]), usd(row["SpotPrice"])) == (known.on_demand, known.spot), row
        for name in {name for name, _ in places}:
            sold = {region for region, each in prices_for(cloud, name).items() if each.on_demand or each.spot}
            assert {region for other, region in places if other == name} == sold


def test_host_and_gpus_together_cost_what_we_list(files: dict[str, Rows]) -> None:
    """By SkyPilot's arithmetic, on every machine of Google Cloud that can be asked for."""
    hosts = {(row["InstanceType"], row["Region"]): row for row in files["gcp"] if row["InstanceType"]}
    gpus = {
        (row["AcceleratorName"], float(row["AcceleratorCount"]), row["Region"]): row
        for row in files["gcp"]
        if row["AcceleratorName"]
    }
    checked = 0
    for kind, count in askable()[0]:
        for each in list_machines(kind, count):
            if each.cloud != "gcp" or each.on_demand is None:
                continue
            host = hosts[each.machine.partition("+")[0], each.region]
            device = gpus[accelerators()[kind].skypilot_name, count, each.region]
            assert float(host["Price"]) + float(device["Price"]) == pytest.approx(each.on_demand)
            assert float(host["vCPUs"]) == each.vcpus and float(host["MemoryGiB"]) == each.memory_gib
            checked += 1
    assert checked > 1000


def test_every_kind_that_is_asked_for_is_in_the_list_of_kinds(files: dict[str, Rows]) -> None:
    clouds = {row["AcceleratorName"]: row["Clouds"] for row in files["common"]}
    assert {accelerators()[kind].skypilot_name for kind, _ in askable()[0]} == set(clouds)
    assert clouds["A10G"] == "['AWS']" and clouds["L4"] == "['AWS', 'GCP']"


def test_questions_are_always_the_same_and_no_two_alike() -> None:
    asked = questions()
    assert asked == questions() and len(set(asked)) == len(asked) == COUNT
    assert {each.capacity for each in asked} == {"spot", "on-demand"}
    for field in ("cpus", "memory_gib", "region"):
        missing = sum(getattr(each, field) is None for each in asked)
        assert COUNT / 4 < missing < COUNT * 3 / 4, field


def test_our_answer_is_the_least_price_of_what_is_large_enough() -> None:
    found = answer(Question("nvidia-l4", 1, "on-demand", cpus=8, region="us-east-1"))
    assert (found.machine, found.usd) == ("g6.2xlarge", price("aws", "us-east-1", "g6.2xlarge").on_demand)
    assert answer(Question("nvidia-l4", 1, "spot", cpus=500)).usd is None
    assert answer(Question("nvidia-a100-80gb", 8, "spot", region="us-west-1")).why_none == "not offered there"


def test_a_question_in_the_words_of_skypilot() -> None:
    asked = Question("nvidia-a100-80gb", 8, "spot", 32, 200, "us-east-1")
    assert resources(asked) == {
        "accelerators": {"A100-80GB": 8},
        "use_spot": True,
        "region": "us-east-1",
        "cpus": "32+",
        "memory": "200+",
    }
    assert resources(Question("nvidia-l4", 1, "on-demand")) == {
        "accelerators": {"L4": 1},
        "use_spot": False,
        "region": None,
    }


def test_what_is_dearer_or_missing_breaks_the_limit() -> None:
    cheap, dear, none = Answer(1.0, machine="a"), Answer(1.1, machine="b"), Answer(why_none="no price is known")

    def broken(*pairs: tuple[Answer, Answer]) -> list[str]:
        ours, theirs = zip(*pairs, strict=True)
        asked = [Question("nvidia-l4", 1, "spot")] * len(pairs)
        return [line.name for line in market.compare(asked, ours, theirs) if line.broken]

    assert broken((cheap, cheap), (cheap, dear), (cheap, none), (none, none)) == []
    assert broken((dear, cheap), (cheap, dear)) == ["choices dearer than SkyPilot's, of 2 that both made"]
    assert broken((none, cheap)) == ["questions answered by SkyPilot alone (1 no price is known)"]


def test_what_google_does_not_sell_so_is_counted_apart() -> None:
    asked, ours = Question("nvidia-h100-80gb", 4, "on-demand"), Answer(why_none="refused")
    lines = list(market.compare([asked], [ours], [Answer(50.0, machine="a3-highgpu-4g")]))
    (line,) = (line for line in lines if line.value == 1)
    assert line.name.startswith("answered by SkyPilot with a machine that is not sold so (1 a3-highgpu-4g: capacity: ")
    assert not any(line.broken for line in lines)


def test_without_skypilot_ours_is_timed_and_the_rest_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(scratch: Path) -> None:
        raise Failed("pip: no such package")

    def timed(commands: Sequence[object], runs: int) -> list[float]:
        return [0.05 for _ in commands]

    monkeypatch.setattr(market, "Sky", missing)
    monkeypatch.setattr(market, "medians_s", timed)
    lines: Iterator[object] = market.measure(tmp_path)
    assert str(next(lines)).startswith("jobs offers --gpu a100-80gb:8, a new process: 50 ms; limit 100")
    assert "choice in a running process" in str(next(lines))
    with pytest.raises(Failed, match="SkyPilot is missing: pip: no such package"):
        next(lines)
