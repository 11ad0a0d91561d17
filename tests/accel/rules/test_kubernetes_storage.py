"""Disks and machines, as Google's table of 2026-08-26 has them."""

import pytest

from accel.catalog.disks import disk_support
from accel.rules.gke import storage as rules


@pytest.mark.parametrize(
    "machine, disk, attaches",
    [
        ("a2-highgpu-1g", "hyperdisk-ml", True),
        ("a2-highgpu-1g", "hyperdisk-balanced", False),
        ("a3-highgpu-8g", "hyperdisk-throughput", True),
        ("a3-ultragpu-8g", "hyperdisk-throughput", False),
        ("a4-highgpu-8g", "hyperdisk-balanced", True),
        ("a4x-highgpu-4g", "pd-balanced", False),
        ("a4x-maxgpu-4g-metal", "hyperdisk-throughput", True),
        ("n1-standard-8", "pd-balanced", True),
        ("a3-highgpu-8g", "pd-balanced", None),
        ("ct6e-standard-4t", "hyperdisk-balanced", True),
        ("ct5p-hightpu-4t", "hyperdisk-balanced", False),
    ],
)
def test_what_a_machine_attaches(machine: str, disk: str, attaches: bool | None) -> None:
    support = disk_support(machine)
    assert support is not None
    assert support.attaches(disk) is attaches


def test_every_gpu_and_tpu_machine_of_the_catalogue_has_a_row() -> None:
    from accel.catalog.tables import rows

    kinds = ("accelerator", "tpu-host")
    lacking = {
        row["machine"]
        for row in rows("machines.csv")
        if row["cloud"] == "gcp" and row["kind"] in kinds and disk_support(row["machine"]) is None
    }
    assert lacking == set()


def test_a_size_below_the_least_is_named_with_it() -> None:
    (finding,) = rules.disk(disk_type="hyperdisk-extreme", size_gib=10, many_readers=False, existing=False)
    assert (finding.field, finding.fix) == ("size_gib", "write 64")
