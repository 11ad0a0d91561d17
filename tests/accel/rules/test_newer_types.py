"""Machine types that the catalogue does not know: newer than it, or misspelt."""

import re

import pytest

from accel.catalog import families, machines
from accel.catalog.machines import as_of
from accel.diagnostics.findings import Finding
from accel.rules import newer_types
from accel.rules.aws import types
from accel.rules.gcp import machines as gcp_machines
from accel.rules.gcp import vms
from accel.rules.gke import nodes

AWS_NEWER = ["g8", "g8.xlarge", "g7x.2xlarge", "g9e.48xlarge", "gr7.4xlarge", "p7.48xlarge", "p6-b400.48xlarge",
             "p6e-gb200.36xlarge", "p8en", "g8.metal-48xl"]  # fmt: skip
AWS_MISSPELT = {
    "g5.2xlage": "g5.2xlarge", "g6.3xlarge": "g6.xlarge", "p5.24xlarge": "p5.48xlarge",
    "p6-b20.48xlarge": "p6-b200.48xlarge",
    "g4.xlarge": "g4ad.xlarge", "p4.24xlarge": "p4d.24xlarge", "g7.lage": "g5", "g99.xlarge": "g", "G8.xlarge": "g",
    "p6b200.48xlarge": "p6-b200.48xlarge", "g8.01xlarge": "g", "g8.1xlarge": "g", "c9.large": "",
}  # fmt: skip
GOOGLE_NEWER = ["a5-highgpu-8g", "a4-megagpu-8g", "a3-omnigpu-8g", "g5-standard-48", "a4y-highgpu-4g"]
GOOGLE_MISSPELT = {
    "a2-highgpu-9g": "a2-highgpu-", "a3-higgpu-8g": "a3-highgpu-8g", "g2-standard-5": "g2-standard-",
    "g2-stndard-8": "g2-standard-8",
    "a3-highgpu-8": "a3-highgpu-8g", "a4-highgpu-9g": "a4-highgpu-8g", "a2-newgpu-1g": "a2-",
    "g4-standard-4g": "g4-standard-",
}  # fmt: skip


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("name", AWS_NEWER)
def test_a_new_family_of_aws_is_a_warning_with_the_age_of_the_catalogue(name: str) -> None:
    found = only(types.instance_types([name]))
    assert (found.rule, found.severity, found.field) == ("aws.types.newer", "warn", "instance_types[0]")
    assert name in found.message and as_of("aws") in found.message
    assert "`stacks refresh --cloud aws`" in found.fix and "ACCEL_CATALOG=refreshed" in found.fix


@pytest.mark.parametrize("name, near", AWS_MISSPELT.items())
def test_a_name_that_is_a_known_one_misspelt_is_rejected_with_the_nearest(name: str, near: str) -> None:
    found = only(types.instance_types([name]))
    assert (found.rule, found.severity) == ("aws.types.unknown", "reject")
    assert near in found.fix


def test_a_size_that_a_family_does_not_have_is_rejected_with_those_that_it_has() -> None:
    found = only(types.instance_types(["g6e.3xlarge"]))
    assert found.rule == "aws.types.unknown"
    for each in machines("aws", family="g6e"):
        assert re.search(rf"\b{each.name.partition('.')[2]}\b", found.message)


@pytest.mark.parametrize("name", GOOGLE_NEWER)
def test_a_new_family_of_google_is_a_warning_where_a_target_only_names_it(name: str) -> None:
    found = only(gcp_machines.target_machine(name))
    assert (found.rule, found.severity, found.field) == ("gcp.machine.newer", "warn", "machine_type")
    assert name in found.message and as_of("gcp") in found.message and "`stacks refresh --cloud gcp`" in found.fix


@pytest.mark.parametrize("name", GOOGLE_NEWER)
def test_what_a_stack_makes_of_it_waits_for_the_refreshed_catalogue(name: str) -> None:
    """Its GPUs are in scripts, labels, quotas and targets, so they have to be known."""
    made = [nodes.machine(name, "gpu"), vms.gpu_machine(name, None, None, "us-central1-a", "spot")]
    for found in map(only, made):
        assert (found.field, found.severity) == ("machine_type", "reject")
        assert as_of("gcp") in found.message and "ACCEL_CATALOG=refreshed" in found.fix


@pytest.mark.parametrize("name, near", GOOGLE_MISSPELT.items())
def test_a_misspelt_name_of_google_is_rejected_with_the_nearest(name: str, near: str) -> None:
    found = only(gcp_machines.machine(name))
    assert (found.rule, found.severity) == ("gcp.machine.unknown", "reject")
    assert near in found.fix


def test_no_known_name_and_no_name_with_a_letter_more_or_less_is_taken_for_newer() -> None:
    """One letter dropped or doubled inside any known family or type, but for what is a generation or variant of its
    own (g6e to g6)."""
    for each in (*families("aws"), *(machine.name for machine in machines("aws"))):
        assert not newer_types.aws(each)
        for i, letter in enumerate(each):
            if each[:i].count(".") or letter in ".-":  # of the size, or of what parts the name
                assert not newer_types.aws(each[:i] + each[i + 1 :]), each[:i] + each[i + 1 :]
    for machine in machines("gcp"):
        assert not newer_types.gcp(machine.name)
        for i in range(machine.name.find("-") + 1, len(machine.name)):
            assert not newer_types.gcp(machine.name[:i] + machine.name[i + 1 :]), (machine.name, i)


def test_the_age_of_the_catalogue_is_a_day() -> None:
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", as_of(cloud)) for cloud in ("aws", "gcp"))
