"""What environments cost: whole estimates, what has no price, and wrong arguments."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.catalog import price
from accel.cost import HOURS_A_MONTH
from stacks.operations.cost.estimate import SCENARIOS, document, estimates, rows
from stacks.operations.stack_files import stack_files
from tests.support.golden import check_golden
from tests.support.project import KEY, environment

from .test_cli import stacks
from .test_config import ROOT

GOLDEN = Path(__file__).parents[1] / "golden" / "cost"


def estimated(path: Path, utilisation: float = 0.3) -> dict[str, Any]:
    (found,) = estimates([path], utilisation)
    return document(found)


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """The dev environment with one text replaced."""
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    assert old in text
    path = tmp_path / "Pulumi.it.yaml"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_golden(name: str) -> None:
    """What `stacks cost <name> -o json` writes; a change of a price changes it."""
    check_golden(GOLDEN / f"{name}.json", [estimated(ROOT / f"Pulumi.{name}.yaml")], sort_keys=False)


@pytest.mark.parametrize("name", ["dev", "prod", "gke-dev"])
def test_sums_are_their_lines_and_scenarios_are_in_order(name: str) -> None:
    found = estimated(ROOT / f"Pulumi.{name}.yaml")
    for scenario in SCENARIOS:
        lines = math.fsum(line[scenario]["usd_hour"] for line in found["lines"])
        total = found["totals"][scenario]
        assert total["usd_hour"] == pytest.approx(lines, abs=1e-3)
        assert total["usd_month"] == pytest.approx(total["usd_hour"] * HOURS_A_MONTH, abs=0.1)
        assert not total["at_least"]
    for line in [*found["lines"], {name: found["totals"][name] for name in SCENARIOS}]:
        assert line["worst"]["usd_hour"] >= line["expected"]["usd_hour"] >= line["floor"]["usd_hour"]
    assert all(line["price_dates"] and line["confidence"] for line in found["lines"])


def test_a_minimum_is_in_the_floor(tmp_path: Path) -> None:
    found = estimated(changed(tmp_path, "capacity: on-demand\n", "capacity: on-demand\n          min_vcpus: 8\n"))
    (line,) = [line for line in found["lines"] if line["what"].startswith("on-demand")]
    assert line["floor"]["usd_hour"] == pytest.approx(0.9776), "one g6.2xlarge"


def test_disabled_environments_start_nothing(tmp_path: Path) -> None:
    path = changed(tmp_path, "capacity: spot\n", "capacity: spot\n          state: DISABLED\n")
    line = estimated(path)["lines"][0]
    assert line["worst"]["usd_hour"] == 0 and "disabled" in line["notes"][-1]


def test_what_has_no_price_is_named_and_never_zero(tmp_path: Path) -> None:
    path = changed(tmp_path, "us-east-1", "sa-east-1")
    found = estimated(path)
    assert any("nat-gateway in sa-east-1" in text for text in found["unknown"])
    assert any("g6.xlarge" in text for text in found["unknown"])
    (nat,) = [line for line in found["lines"] if line["what"].startswith("NAT")]
    assert nat["floor"]["usd_hour"] is None
    assert found["totals"]["worst"]["at_least"] and found["totals"]["floor"]["at_least"]
    (made,) = estimates([path], 0.3)
    assert rows(made)[-1]["worst"].startswith("at least ") or rows(made)[-1]["worst"] == "unknown"


def test_a_region_younger_than_the_catalogue(tmp_path: Path) -> None:
    found = estimated(changed(tmp_path, "us-east-1", "us-north-9"))
    assert any('unknown region "us-north-9"' in text for text in found["unknown"])
    assert found["totals"]["worst"] == {"usd_hour": None, "usd_month": None, "at_least": True}


def test_what_is_not_included_is_said(tmp_path: Path) -> None:
    assert len(estimated(ROOT / "Pulumi.prod.yaml")["not_included"]) >= 5
    bare = changed(tmp_path, "        egress: nat\n", "        egress: endpoints\n")
    image = "public.ecr.aws/deep-learning-containers/pytorch-training"  # which such a network cannot pull
    own = "210020003000.dkr.ecr.us-east-1.amazonaws.com/pytorch-training"
    bare.write_text(bare.read_text().replace(image, own))
    kinds = [line["what"] for line in estimated(bare)["lines"]]
    assert not any("NAT" in what for what in kinds)
    assert any("interface endpoints: 8 in 2 zones" in what for what in kinds)


def test_monitoring_is_paid_for_and_not_counted(tmp_path: Path) -> None:
    watched = "      queues:\n"
    path = changed(tmp_path, watched, f"      monitoring:\n        gpu_metrics: true\n{watched}")
    found, before = estimated(path), estimated(ROOT / "Pulumi.dev.yaml")
    assert found["totals"] == before["totals"]
    said = [text for text in found["not_included"] if text.startswith("monitoring: ")]
    assert len(said) == 2 and "alarms" in said[0] and "GPUs" in said[1]


def test_without_a_section_nothing_is_paid(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.bare.yaml"
    path.write_text("config:\n  accel:environment:\n    owner: a\n")
    assert estimated(path)["totals"]["worst"] == {"usd_hour": 0.0, "usd_month": 0.0, "at_least": False}


def test_the_command() -> None:
    code, out, errors = stacks("cost", "dev", "--utilisation", "1", "-o", "json")
    assert (code, errors) == (0, [])
    found = json.loads("\n".join(out))
    assert [each["stack"] for each in found] == ["dev"] and found[0]["utilisation"] == 1
    code, out, errors = stacks("cost")
    assert (code, errors) == (0, [])
    assert [line for line in out if line.startswith("dev: ")] and any("a month of 730 hours" in line for line in out)
    assert any(line.startswith("not included: ") for line in out) and any(line.startswith("note: ") for line in out)


@pytest.mark.parametrize("share", ["1.5", "-0.1", "nan", "much", ""])
def test_utilisation_is_a_share(share: str) -> None:
    code, out, errors = stacks("cost", "dev", "--utilisation", share)
    assert (code, out) == (2, []) and "must be a number from 0 to 1" in errors[0]


def test_wrong_names_and_files(tmp_path: Path) -> None:
    assert stacks("cost", "dve")[0] == 6
    assert stacks("cost", "dev", "-o", "wide")[0] == 2
    changed(tmp_path, "max_vcpus: 128", "max_vcpu: 128")
    code, _, errors = stacks("cost", cwd=tmp_path)
    assert code == 2 and "unknown key" in errors[0]
    assert stack_files(["dev"], ROOT)


def with_pools(tmp_path: Path, **pools: dict[str, Any]) -> dict[str, Any]:
    """The estimate of the GKE playground with these pools beside its own, all the time in use."""
    values = environment("gke-dev", cloud="gcp")
    values["gcp"]["pools"] |= pools
    path = tmp_path / "Pulumi.it.yaml"
    path.write_text(yaml.safe_dump({"config": {KEY: values}}))
    return estimated(path, 1.0)


def usd(*machines: str, spot: bool = False) -> float:
    """What they cost together in the playground's region, by the catalogue."""
    found = [price("gcp", "us-central1", name) for name in machines]
    known = [each.spot if spot else each.on_demand for each in found]
    return math.fsum(each for each in known if each is not None) if None not in known else math.nan


TPU = {"kind": "tpu", "machine_type": "ct5lp-hightpu-4t"}
T4 = {"kind": "gpu", "machine_type": "n1-standard-8", "accelerator": "nvidia-tesla-t4", "accelerator_count": 2}
L4 = {"kind": "gpu", "machine_type": "g2-standard-4"}


@pytest.mark.parametrize(
    ("pool", "floor", "expected", "worst"),
    [
        ({**TPU, "topology": "4x4"}, 0, usd("v5litepod-16"), usd("v5litepod-16")),
        ({**TPU, "topology": "2x4", "min_nodes": 2}, usd("v5litepod-8"), usd("v5litepod-8"), usd("v5litepod-8")),
        (
            {**TPU, "topology": "2x2", "max_nodes": 3, "capacity": "spot"},
            0,
            3 * usd("v5litepod-4", spot=True),
            3 * usd("v5litepod-4"),
        ),
        ({**T4, "max_nodes": 3}, 0, 3 * usd("n1-standard-8", "n1+nvidia-tesla-t4x2"),
         3 * usd("n1-standard-8", "n1+nvidia-tesla-t4x2")),
        (
            {**T4, "max_nodes": 2, "min_nodes": 1, "capacity": "spot"},
            usd("n1-standard-8", "n1+nvidia-tesla-t4x2", spot=True),
            2 * usd("n1-standard-8", "n1+nvidia-tesla-t4x2", spot=True),
            2 * usd("n1-standard-8", "n1+nvidia-tesla-t4x2"),
        ),
        ({**L4, "limits": "per-zone", "min_nodes": 1, "max_nodes": 2, "zones": ["us-central1-a", "us-central1-b"]},
         2 * usd("g2-standard-4"), 4 * usd("g2-standard-4"), 4 * usd("g2-standard-4")),
        ({**L4, "accelerator": "nvidia-l4", "accelerator_count": 1, "max_nodes": 3},
         0, 3 * usd("g2-standard-4"), 3 * usd("g2-standard-4")),
    ],
)  # fmt: skip
def test_tpus_are_priced_by_the_slice_and_gpus_on_n1_with_their_host(
    tmp_path: Path, pool: dict[str, Any], floor: float, expected: float, worst: float
) -> None:
    found = with_pools(tmp_path, it=pool)
    (line,) = [line for line in found["lines"] if line["component"] == "gcp.pools.it"]
    assert [line[name]["usd_hour"] for name in SCENARIOS] == pytest.approx([floor, expected, worst], abs=1e-4)
    assert found["unknown"] == [] and line["price_dates"] and not line["worst"]["at_least"]


def test_a_pool_without_a_known_price_makes_the_total_a_least(tmp_path: Path) -> None:
    found = with_pools(tmp_path, it={"kind": "tpu", "machine_type": "tpu7x-standard-4t", "topology": "2x2x1"})
    (slice_,) = [line for line in found["lines"] if line["component"] == "gcp.pools.it"]
    assert (slice_["floor"]["usd_hour"], slice_["worst"]["usd_hour"]) == (0, None)
    assert found["totals"]["worst"]["at_least"] and not found["totals"]["floor"]["at_least"]
    assert any(text.startswith("gcp.pools.it: ") and "tpu7x-2x2x1" in text for text in found["unknown"])


def test_both_clouds_of_one_environment() -> None:
    found = estimated(ROOT / "Pulumi.sandbox.yaml")
    assert found["region"] == "us-east-1, us-central1" and found["unknown"] == []


def test_the_first_line_says_what_it_costs_a_month(tmp_path: Path) -> None:
    def first(path: Path) -> str:
        code, lines, _ = stacks("cost", str(path))
        assert code == 0
        return lines[0]

    month = estimated(ROOT / "Pulumi.dev.yaml")["totals"]
    dollars = [f"${month[name]['usd_month']:,.0f}" for name in SCENARIOS]
    assert first(ROOT / "Pulumi.dev.yaml") == "dev: idle {} a month, expected {}, at most {}".format(*dollars)
    partly = first(changed(tmp_path, "us-east-1", "sa-east-1"))
    assert partly.startswith("it: idle ") and partly.endswith(" at its largest")
