"""$ACCEL_CATALOG: what it means, that only prices and offers follow it, and what is said of a damaged one."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

from accel.catalog import DamagedData, machine, price, regions, zones
from accel.catalog.selection import REFRESHED, NoCatalog, cache
from accel.catalog.tables import DATA, shipped_table
from tests.support.catalog import forget

OLD, NEW = "2026-11-21T101500.000000Z", "2026-11-22T101500.000000Z"
PRICE = price("aws", "us-east-1", "g5.xlarge").on_demand


def catalogue(folder: Path, old: str = ",1.006,", new: str = ",0.5,") -> Path:
    """A folder as a refresh leaves it, with g5.xlarge of us-east-1 at half a dollar."""
    folder.mkdir(parents=True)
    for name in REFRESHED:
        shutil.copy(f"{DATA}/{name}", folder)
    path = folder / "prices.csv"
    lines = path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("aws,us-east-1,,g5.xlarge,"))
    assert old in lines[at]
    lines[at] = lines[at].replace(old, new)
    path.write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, which is returned."""
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    monkeypatch.delenv("ACCEL_CATALOG", raising=False)
    forget()
    yield tmp_path / "cache" / "accel" / "catalog"
    forget()


def on_demand() -> float | None:
    forget()
    return price("aws", "us-east-1", "g5.xlarge").on_demand


def test_nothing_changes_unless_it_is_asked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue(home / NEW)
    assert on_demand() == PRICE == 1.006
    monkeypatch.setenv("ACCEL_CATALOG", "")
    assert on_demand() == PRICE


def test_the_newest_and_a_path(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache() == str(home)
    catalogue(home / OLD, new=",0.7,")
    monkeypatch.setenv("ACCEL_CATALOG", "refreshed")
    assert on_demand() == 0.7
    catalogue(home / NEW)
    (home / ".draft-x").mkdir()
    assert on_demand() == 0.5
    monkeypatch.setenv("ACCEL_CATALOG", str(catalogue(tmp_path / "own", new=",0.9,")))
    assert on_demand() == 0.9
    assert machine("aws", "g5.xlarge").vcpus == 4, "machines are those of the distribution"
    assert shipped_table("prices.csv").file == "prices.csv"


def test_offers_follow_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = catalogue(tmp_path / "own")
    path = folder / "regions.csv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("aws,us-east-1,use1-az")]
    path.write_text("\n".join([*lines, "aws,us-east-1,use1-az9,g5.xlarge,moto,2026-11-22"]) + "\n")
    monkeypatch.setenv("ACCEL_CATALOG", str(folder))
    forget()
    assert zones("aws", "us-east-1", "g5.xlarge") == ("use1-az9",) and "us-east-1" in regions("aws")


def test_what_is_not_there(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_CATALOG", "refreshed")
    with pytest.raises(NoCatalog, match=f"^ACCEL_CATALOG=refreshed: nothing was refreshed yet into {home}$"):
        on_demand()
    monkeypatch.setenv("ACCEL_CATALOG", str(tmp_path / "none"))
    with pytest.raises(NoCatalog, match=r"none: .*prices\.csv: No such file"):
        on_demand()


def test_damage_is_named_with_the_whole_path_and_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = catalogue(tmp_path / "own", new=",1;006,")
    number = 1 + next(
        n
        for n, line in enumerate((folder / "prices.csv").read_text().splitlines())
        if ",g5.xlarge," in line and ";" in line
    )
    monkeypatch.setenv("ACCEL_CATALOG", str(folder))
    with pytest.raises(DamagedData) as error:
        on_demand()
    assert str(error.value) == f"{folder}/prices.csv:{number}: on_demand_usd_hour: not a number: 1;006"
    (folder / "prices.csv").write_bytes(b"cloud\n\xff\n")
    with pytest.raises(DamagedData, match=rf"{folder}/prices\.csv:2: not UTF-8"):
        on_demand()


def test_a_refreshed_catalogue_loads_no_library_of_size(home: Path) -> None:
    """How long the first look-ups take is measured by `make bench`."""
    catalogue(home / NEW)
    environ = {"ACCEL_CATALOG": "refreshed", "XDG_CACHE_HOME": str(home.parents[1])}
    look = "import sys; from accel.catalog import price; price('aws', 'us-east-1', 'g5.xlarge'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, env=environ)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "platformdirs" in loaded
    assert not loaded & {"boto3", "click", "google", "pulumi", "pydantic", "requests", "yaml"}
