"""No refusal rests on a figure from memory: with every such figure changed, the same things are refused."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.catalog import machines, tables
from accel.catalog.gpu_attachments import N1_SIZES
from accel.catalog.tables import Row, rows
from accel.catalog.tpu import slice_names
from accel.catalog.tpu_generations import GENERATIONS
from accel.rules import Finding
from accel.rules.aws import environments, fit, images, places, types
from accel.rules.gcp import gpus as gcp_gpus
from accel.rules.gcp import machines as gcp_machines
from accel.rules.gcp import tpu
from accel.rules.vertex import machines as vertex_machines
from tests.support.catalog import forget

Refusal = tuple[object, ...]

SWAPPED = {"x86_64": "arm64", "arm64": "x86_64", "yes": "no", "no": "yes"}
NUMBERS = (1, 2, 4, 8, 16)


def changed(column: str, cell: str) -> str:
    """Another value of the same kind."""
    if cell in SWAPPED:
        return SWAPPED[cell]
    try:
        return f"{float(cell) * 3:g}"
    except ValueError:
        return "nvidia-l4" if column == "accelerator" else f"{cell}-x" if column == "tpu_topology" else cell


def rewritten(row: Row) -> str:
    recalled = row.parts("unverified_fields")
    cells = [changed(column, cell) if column in recalled else cell for column, cell in row.items()]
    return ",".join(f'"{cell}"' if "," in cell else cell for cell in cells)


@pytest.fixture
def distorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The catalogue with another value for each figure that is named in unverified_fields."""
    shutil.copytree(tables.DATA, tmp_path / "data")
    for file in ("machines.csv", "accelerators.csv"):
        before = (tmp_path / "data" / file).read_text(encoding="utf-8").splitlines()
        after = [before[0], *map(rewritten, rows(file))]
        assert after != before
        (tmp_path / "data" / file).write_text("\n".join(after) + "\n", encoding="utf-8")
    monkeypatch.setattr(tables, "DATA", str(tmp_path / "data"))
    forget()
    yield
    forget()


def refused(findings: list[Finding], *of: object) -> Iterator[Refusal]:
    return ((each.rule, each.field, *of) for each in findings if each.severity == "reject")


def on_aws(names: list[str]) -> Iterator[Refusal]:
    for name in names:
        yield from refused(types.instance_types([name]), name)
        yield from refused(images.image("ECS_AL2023_NVIDIA", [name]), name)
        yield from refused(places.instance_types("eu-west-3", [name]), name)
        for most in (4, 8, 64, 96, 192):
            yield from refused(environments.capacity(0, most, [name], usable_old=True), name, most)
        for gpus in NUMBERS:
            for vcpus, memory_mib in ((1, 1000), (8, 30000), (96, 30000), (1, 400_000), (192, 2_000_000)):
                yield from refused(fit.fit(vcpus, memory_mib, gpus, [name]), name, gpus, vcpus, memory_mib)


def on_google(names: list[str], kinds: list[str]) -> Iterator[Refusal]:
    n1 = [f"n1-{series}-{vcpus}" for series in ("standard", "highmem", "highcpu") for vcpus in N1_SIZES]
    for kind in kinds:
        yield from refused(gcp_gpus.accelerator_name(kind), kind)
        for count in (*NUMBERS, 3):
            yield from refused(gcp_gpus.accelerator_count(kind, count), kind, count)
            for name in (*names, *n1, "custom-1-512"):
                yield from refused(gcp_machines.machine(name, kind, count), name, kind, count)
                yield from refused(vertex_machines.n1_gpus(name, kind, count), name, kind, count)


def on_tpus(names: list[str]) -> Iterator[Refusal]:
    for name in names:
        for topology in (None, "2x2", "3x3", "4x4", "4x4x4"):
            yield from refused(tpu.accelerator_type(name, topology), name, topology)
    for host in ("ct3-hightpu-4t", "ct3p-hightpu-4t", "ct5lp-hightpu-8t", "ct6e-standard-4t"):
        for topology in ("2x2", "2x4", "4x4", "32x32"):
            yield from refused(tpu.pool(host, topology, 3), host, topology)


def everything(aws: list[str], google: list[str], kinds: list[str], slices: list[str]) -> set[Refusal]:
    return {*on_aws(aws), *on_google(google, kinds), *on_tpus(slices)}


def corpus() -> tuple[list[str], list[str], list[str], list[str]]:
    with_accelerators = [each for each in machines("gcp") if each.accelerator]
    return (
        [each.name for each in machines("aws")],
        [each.name for each in with_accelerators],
        sorted({each.accelerator for each in with_accelerators} | {"nvidia-tesla-t4", "nvidia-tesla-v100", "a10g"}),
        [name for generation in GENERATIONS for name in slice_names(generation)[:12]],
    )


def test_what_is_refused_does_not_depend_on_figures_from_memory(request: pytest.FixtureRequest) -> None:
    asked = corpus()
    before = everything(*asked)
    assert len({rule for rule, *_ in before}) >= 12 and len(before) > 5000
    request.getfixturevalue("distorted")
    after = everything(*asked)
    assert sorted(map(repr, before ^ after))[:10] == []


def test_shapes_and_hosts_from_memory_refuse_nothing() -> None:
    low = {row["accelerator"] for row in rows("machines.csv") if "tpu_topology" in row.parts("unverified_fields")}
    assert low == {each.accelerator for each in GENERATIONS if each.recalled} == {"tpu-v2"}
    for name in ("v2-32", "v2-128", "v2-256", "v2-512"):
        assert [each.severity for each in tpu.accelerator_type(name, "3x3")] == ["warn"]
