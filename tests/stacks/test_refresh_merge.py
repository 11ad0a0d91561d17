"""Readings laid over what ships, and the catalogue written whole or not at all."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import platformdirs
import pytest

from accel.catalog.selection import REFRESHED, snapshots
from accel.catalog.tables import Row, Table, shipped_table
from accel.diagnostics.errors import BadInput, JobsError
from stacks.operations.refresh.aws import OFFERS, ON_DEMAND, SPOT
from stacks.operations.refresh.gcp import SOURCE
from stacks.operations.refresh.merge import DRAFT_AGE_S, MergeResult, check, merge, write
from stacks.operations.refresh.reading import Reading, Spot

from .test_config import ROOT

DAY = "2026-11-22"
EAST = "us-east-1"
NOW = datetime(2026, 11, 22, 10, 15, tzinfo=UTC)
TEXTS = {name: f"a,b\n{name},1\n" for name in REFRESHED}


def aws(**read: object) -> Reading:
    plain = Reading("aws", (EAST,), {"machine": "listed"}, "high", "az-min-median", ON_DEMAND, SPOT, OFFERS)
    return replace(plain, **read)


def gcp(**read: object) -> Reading:
    basis = {"machine": "sum-of-skus", "n1-attach": "unit-x-count"}
    return replace(Reading("gcp", ("us-central1",), basis, "medium", "region", SOURCE, SOURCE), **read)


def rows(outcome: MergeResult, file: str = "prices.csv") -> list[Row]:
    return Table(file, outcome.texts[file]).rows()


def line(table: list[Row], machine: str, region: str = EAST) -> Row | None:
    return next((row for row in table if (row["machine"], row["region"]) == (machine, region)), None)


def before(machine: str, region: str = EAST) -> Row:
    found = line(shipped_table("prices.csv").rows(), machine, region)
    assert found is not None
    return found


def test_nothing_read_is_what_ships() -> None:
    outcome = merge([aws()], DAY)
    assert {name: [*map(dict, Table(name, text).rows())] for name, text in outcome.texts.items()} == {
        name: [*map(dict, shipped_table(name).rows())] for name in REFRESHED
    }
    assert outcome.kept == () and outcome.counts == {("aws", EAST): {"on_demand": 0, "spot": 0, "offers": 0}}


def test_what_was_read_has_its_day_and_the_rest_its_own() -> None:
    read = aws(
        on_demand={(EAST, "g5.xlarge"): 1.5, (EAST, "g6.xlarge"): 0.912345678},
        spot={(EAST, "g5.xlarge"): Spot(0.3, 0.45, 5)},
    )
    outcome = merge([read], DAY)
    prices = rows(outcome)
    live = line(prices, "g5.xlarge")
    assert live == {
        **before("g5.xlarge"),
        **{"on_demand_usd_hour": "1.5", "on_demand_basis": "listed", "on_demand_source": ON_DEMAND.id},
        **{"on_demand_snapshot": DAY, "spot_usd_hour_min": "0.3", "spot_usd_hour_median": "0.45"},
        **{"spot_zone_count": "5", "spot_basis": "az-min-median", "spot_source": SPOT.id, "spot_snapshot": DAY},
        "confidence": "high",
    }
    half, old = line(prices, "g6.xlarge"), before("g6.xlarge")
    assert half is not None and (half["on_demand_usd_hour"], half["on_demand_snapshot"]) == ("0.912346", DAY)
    assert {name: half[name] for name in half if name.startswith("spot")} == {
        name: old[name] for name in old if name.startswith("spot")
    }
    assert {row["source_id"] for row in rows(outcome, "sources.csv")} == {
        *(row["source_id"] for row in shipped_table("sources.csv").rows()),
        ON_DEMAND.id,
        SPOT.id,
    }
    untouched = [
        dict(row) for row in prices if row["machine"] not in ("g5.xlarge", "g6.xlarge") or row["region"] != EAST
    ]
    assert len(untouched) == len(prices) - 2
    shipped_rows = [dict(row) for row in shipped_table("prices.csv").rows()]
    assert [row for row in shipped_rows if row in untouched] == untouched
    assert outcome.counts["aws", EAST] == {"on_demand": 2, "spot": 1, "offers": 0}


def test_half_a_line_is_no_surer_than_it_was() -> None:
    old = next(
        row for row in shipped_table("prices.csv").rows() if row["confidence"] == "low" and row["cloud"] == "gcp"
    )
    key = (old["region"], old["machine"])
    assert old["spot_usd_hour_median"] and not old["on_demand_usd_hour"]
    half = line(rows(merge([gcp(on_demand={key: 60.0}, regions=(key[0],))], DAY)), key[1], key[0])
    assert half is not None and (half["confidence"], half["notes"]) == ("low", "")
    both = gcp(on_demand={key: 60.0}, spot={key: Spot(20, 20, 1)}, regions=(key[0],))
    whole = line(rows(merge([both], DAY)), key[1], key[0])
    assert whole is not None and whole["confidence"] == "medium"


def test_a_line_that_did_not_ship_is_made() -> None:
    priced = {(row["cloud"], row["region"], row["machine"]) for row in shipped_table("prices.csv").rows()}
    key = next(
        (row["region"], row["machine"])
        for row in shipped_table("regions.csv").rows()
        if row["machine"] == "g5.xlarge" and ("aws", row["region"], "g5.xlarge") not in priced
    )
    made = line(rows(merge([aws(regions=(key[0],), on_demand={key: 2.0})], DAY)), key[1], key[0])
    assert made is not None and made["price_scope"] == "machine" and made["includes_local_ssd"] == "yes"
    assert (made["confidence"], made["spot_usd_hour_median"], made["notes"]) == ("high", "", "")


def test_the_note_of_an_attachment_stays_and_that_of_a_ratio_goes() -> None:
    key = ("us-central1", "n1+nvidia-tesla-t4x1")
    attached = line(rows(merge([gcp(on_demand={key: 0.36})], DAY)), key[1], key[0])
    assert attached is not None and attached["on_demand_basis"] == "unit-x-count"
    assert attached["notes"] == before(key[1], key[0])["notes"] == "add the price of the n1 host"
    derived = next(row for row in shipped_table("prices.csv").rows() if row["on_demand_basis"] == "derived-ratio")
    key = (derived["region"], derived["machine"])
    live = line(
        rows(merge([aws(regions=(key[0],), on_demand={key: derived.figure("on_demand_usd_hour")})], DAY)),
        key[1],
        key[0],
    )
    assert live is not None and (live["on_demand_basis"], live["notes"], live["confidence"]) == ("listed", "", "high")


def test_offers_take_the_place_of_the_shipped_and_prices_go_with_them() -> None:
    read = aws(offers={EAST: {"g5.xlarge": ("use1-az1", "use1-az2")}}, on_demand={(EAST, "g6.xlarge"): 1.0})
    outcome = merge([read], DAY)
    offers = rows(outcome, "regions.csv")
    assert [(row["zone"], row["source"], row["snapshot"]) for row in offers if row["region"] == EAST] == [
        ("use1-az1", OFFERS.id, DAY),
        ("use1-az2", OFFERS.id, DAY),
    ]
    assert [dict(row) for row in offers if row["region"] != EAST] == [
        dict(row) for row in shipped_table("regions.csv").rows() if row["region"] != EAST
    ]
    assert {row["machine"] for row in rows(outcome) if row["region"] == EAST} == {"g5.xlarge"}
    assert outcome.counts["aws", EAST] == {"on_demand": 0, "spot": 0, "offers": 1}


@pytest.mark.parametrize(
    "read, why",
    [
        ({"on_demand": {(EAST, "g5.xlarge"): 0.01}}, "spot_usd_hour_median: above on demand, 0.01"),
        ({"on_demand": {(EAST, "g5.xlarge"): -1.0}}, "on_demand_usd_hour: not plausible: -1"),
        ({"on_demand": {(EAST, "g5.xlarge"): float("inf")}}, "on_demand_usd_hour: not a number: inf"),
        ({"on_demand": {(EAST, "g5.xlarge"): float("nan")}}, "on_demand_usd_hour: not a number: nan"),
        ({"on_demand": {(EAST, "g5.xlarge"): 40.0}}, "on_demand_usd_hour: not plausible, 40 an accelerator: 40"),
        ({"spot": {(EAST, "g5.xlarge"): Spot(9.0, 9.0, 1)}}, "spot_usd_hour_median: above on demand, 1.006: 9"),
        ({"spot": {(EAST, "g5.xlarge"): Spot(0.0, 0.4, 1)}}, "spot_usd_hour_min: not between zero and the median: 0"),
    ],
)
def test_a_line_that_would_not_hold_stays_as_shipped(read: dict[str, object], why: str) -> None:
    outcome = merge([aws(kept=["first"], **read)], DAY)
    assert line(rows(outcome), "g5.xlarge") == before("g5.xlarge")
    assert outcome.kept[0] == "first" and outcome.kept[1].startswith(f"g5.xlarge in {EAST}: {why}")
    assert outcome.counts["aws", EAST]["on_demand"] == outcome.counts["aws", EAST]["spot"] == 0


def test_a_set_that_does_not_hold_together_is_refused() -> None:
    texts = merge([aws()], DAY).texts
    check(texts)
    with pytest.raises(JobsError, match=r"nothing is written.*prices\.csv:\d+: region: does not offer"):
        check({**texts, "regions.csv": texts["regions.csv"].replace("aws,us-east-1,", "aws,us-east-9,")})
    with pytest.raises(JobsError, match=r"nothing is written.*zone: not a zone of us-east-1: moon"):
        merge([aws(offers={EAST: {"g5.xlarge": ("moon",)}})], DAY)


# --- the cache


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    return tmp_path / "accel" / "catalog"


def test_a_dated_folder_each_and_two_are_kept(cache: Path) -> None:
    folders = [write(TEXTS, NOW + timedelta(microseconds=n)) for n in range(3)]
    assert [folder.name for folder in folders[1:]] == snapshots() == [path.name for path in sorted(cache.iterdir())]
    assert folders[0].name == "2026-11-22T101500.000000Z"
    assert {path.name: path.read_text() for path in folders[2].iterdir()} == TEXTS


def test_what_a_killed_refresh_left_is_removed_in_time(cache: Path) -> None:
    for name in ("old", "young"):
        (cache / f".draft-{name}").mkdir(parents=True)
    ago = time.time() - 2 * DRAFT_AGE_S
    os.utime(cache / ".draft-old", (ago, ago))
    folder = write(TEXTS, NOW)
    assert {path.name for path in cache.iterdir()} == {".draft-young", folder.name}


def test_a_failure_leaves_the_earlier_one_whole(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = write(TEXTS, NOW)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="cannot be written: No space left on device"):
        write(TEXTS, NOW + timedelta(seconds=1))
    assert list(cache.iterdir()) == [earlier]


def test_a_cache_that_cannot_be_written(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file")
    with pytest.raises(BadInput, match=f"{cache}: cannot be written: File exists"):
        write(TEXTS, NOW)


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from stacks.operations.refresh.merge import write
step, count = sys.argv[1], int(sys.argv[2])
calls = 0
real = {"fsync": os.fsync, "rename": os.rename}[step]
def die(*arguments, **named):
    global calls
    calls += 1
    if calls == count:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **named)
setattr(os, step, die)
write({"prices.csv": "new", "regions.csv": "new", "sources.csv": "new"}, datetime.now(UTC))
"""


@pytest.mark.parametrize("step, count", [("fsync", 1), ("fsync", 3), ("rename", 1)])
def test_a_killed_refresh_leaves_the_earlier_one_whole(
    cache: Path, tmp_path: Path, step: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = write(TEXTS, NOW)
    environ = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", KILLED, step, str(count)], env=environ, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert snapshots() == [earlier.name] and {path.name: path.read_text() for path in earlier.iterdir()} == TEXTS
    assert len(list(cache.glob(".draft-*"))) == 1


def test_a_clock_that_went_back_cannot_put_a_folder_into_another(cache: Path) -> None:
    write(TEXTS, NOW)
    with pytest.raises(BadInput, match="cannot be written"):
        write(TEXTS, NOW)
    assert len(list(cache.iterdir())) == 1
