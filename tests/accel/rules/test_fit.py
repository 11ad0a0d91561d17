"""Whether a size can be placed at all: types, usable memory, GPUs, and room for one instance, over a whole queue."""

from collections.abc import Sequence

import pytest

from accel.catalog.prices import price
from accel.rules import Finding
from accel.rules.aws.fit import QueueEnvironment, Size, fit, in_queues, placement, startable, unserved_queue

TRAIN = Size(8, 30_000, 1)


def said(found: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.rule, finding.field) for finding in found]


@pytest.mark.parametrize(
    ("size", "places", "expected"),
    [
        # Some type holds it, and there is room for it.
        (TRAIN, [("a", ["g5"], 8)], []),
        (TRAIN, [("a", ["g5"], 7), ("b", ["g6"], 8)], []),
        # Room where it does not fit, and a fit where there is no room.
        (TRAIN, [("a", ["g5.xlarge"], 64), ("b", ["g5.2xlarge"], 7)], [("aws.fit.over-max", "vcpus")]),
        (Size(4, 60_000, 1), [("a", ["g5"], 15)], [("aws.fit.over-max", "memory_mib")]),
        (Size(4, 60_000, 4), [("a", ["g5"], 47)], [("aws.fit.over-max", "gpus")]),
        (Size(16, 30_000, 1), [("a", ["g5"], 15)], [("aws.fit.over-max", "vcpus")]),
        # No type holds it, whatever the room.
        (Size(8, 32_768, 1), [("a", ["g5.2xlarge"], 256)], [("aws.fit.none", "memory_mib")]),
        (Size(8, 30_000, 16), [("a", ["g5"], 8)], [("aws.fit.too-many-gpus", "gpus")]),
        # What holds it only perhaps is warned of; so is what the larger type would hold, if there were room for it.
        (Size(8, 31_000, 1), [("a", ["g5"], 8)], [("aws.fit.tight", "memory_mib")]),
        (Size(8, 31_000, 1), [("a", ["g5"], 16)], [("aws.fit.head-room", "memory_mib")]),
        # Nobody knows what a type holds that the catalogue does not know.
        (TRAIN, [("a", ["q9"], 64)], []),
        (Size(8, 60_000, 1), [("a", ["g5.2xlarge", "q9"], 64)], []),
        (Size(128, 60_000, 1), [("a", ["q9"], 64)], [("aws.fit.over-max", "vcpus")]),
        (TRAIN, [], []),
    ],
)
def test_one_queue(size: Size, places: list[tuple[str, list[str], int]], expected: list[tuple[str, str]]) -> None:
    assert said(placement(size, [QueueEnvironment(*place) for place in places])) == expected


def test_the_fix_names_the_environment_that_lacks_least() -> None:
    places = [
        QueueEnvironment("a", ["g5.16xlarge"], 16),
        QueueEnvironment("b", ["g5.4xlarge"], 12),
        QueueEnvironment("c", ["g5.xlarge"], 64),
    ]
    (finding,) = placement(Size(8, 60_000, 1), places)
    assert finding.message == (
        "8 vCPUs, 60000 MiB and 1 GPUs need an instance that no environment has room for "
        "(a: max_vcpus is 16, g5.16xlarge has 64, b: max_vcpus is 12, g5.4xlarge has 16)"
    )
    assert finding.fix == "raise max_vcpus of b to at least 16"


def test_with_room_it_says_what_types_alone_say() -> None:
    for size in (TRAIN, Size(8, 32_768, 1), Size(32, 131_072, 4), Size(1, 4, 0)):
        for types in (["g5"], ["g6", "p4d"], ["g5.2xlarge"]):
            assert said(placement(size, [QueueEnvironment("a", types, 10_000)])) == said(fit(*size, types))


def test_types_that_the_room_holds() -> None:
    places = [QueueEnvironment("a", ["p4d", "p5.48xlarge"], 100), QueueEnvironment("b", ["g5"], 8)]
    assert [machine.name for machine in startable(places)] == ["p4d.24xlarge", "g5.xlarge", "g5.2xlarge"]


def test_a_definition_goes_by_the_queue_that_suits_it_best() -> None:
    small, large = [QueueEnvironment("a", ["g5.xlarge"], 64)], [QueueEnvironment("b", ["p4d"], 96)]
    assert in_queues(Size(4, 14_000, 1), {"small": small, "large": large}) == []
    assert said(in_queues(Size(64, 60_000, 8), {"small": small, "large": large})) == []
    assert said(in_queues(Size(64, 60_000, 8), {"small": small})) == [("aws.fit.too-many-gpus", "gpus")]
    assert in_queues(TRAIN, {}) == in_queues(TRAIN, {"empty": []}) == []


def test_a_queue_that_serves_one_definition_is_enough() -> None:
    sizes = {"train": TRAIN, "big": Size(64, 60_000, 8)}
    assert unserved_queue(sizes, [QueueEnvironment("a", ["g5"], 8)]) == []
    assert unserved_queue({}, [QueueEnvironment("a", ["g5"], 8)]) == []
    (finding,) = unserved_queue(sizes, [QueueEnvironment("a", ["g5.xlarge"], 8)])
    assert finding.severity == "warn"


@pytest.mark.parametrize(
    ("types", "region", "said"),
    [
        (["p5.4xlarge", "g5"], "us-east-1", "runs on g5.4xlarge or larger (by price in us-east-1)"),
        (["p5.4xlarge", "g5"], None, "runs on g5.4xlarge or larger;"),
        (["g5"], "nowhere-1", "runs on g5.4xlarge or larger (by size: no price in nowhere-1 is known)"),
    ],
)
def test_what_a_job_of_full_memory_runs_on_is_named_by_price(types: list[str], region: str | None, said: str) -> None:
    (warned,) = placement(Size(8, 32_768, 1), [QueueEnvironment("a", types, 64, region)])
    assert warned.rule == "aws.fit.head-room" and said in warned.text


def test_types_that_would_hold_a_job_are_named_by_price() -> None:
    (refused,) = placement(Size(4, 130_000, 1), [QueueEnvironment("a", ["g5.xlarge"], 64, "us-east-1")])
    named = refused.fix.partition(" such as ")[2].partition(" (by price in us-east-1)")[0].split(", ")
    usd = [price("aws", "us-east-1", name).on_demand or 0 for name in named]
    assert len(named) == 3 and usd[0] > 0 and usd == sorted(usd) and "p5.4xlarge" not in named
    (unsaid,) = placement(Size(4, 130_000, 1), [QueueEnvironment("a", ["g5.xlarge"], 64)])
    assert "(by price" not in unsaid.fix
