import random
import string

import pytest

from accel.catalog import UnknownName, accelerators, machines, nearest

KEYS = [
    "allocation_strategy", "aws", "bid_percentage", "environments", "evaluate_on_exit", "image_id_override",
    "image_type", "instance_types", "job_queues", "kind", "log_group", "max_vcpus", "memory_mib", "min_vcpus",
    "priority", "protect", "retain_on_delete", "security_group_ids", "service_role", "shm_mib", "state",
    "subnet_ids", "timeout_s", "vcpus",
]  # fmt: skip
TYPES = [machine.name for machine in machines("aws")]


def typos(name: str, count: int, dice: random.Random) -> list[str]:
    """Single edits of a name: a character left out, added, replaced, or swapped with its neighbour."""
    found: list[str] = []
    letters = string.ascii_lowercase + string.digits
    for _ in range(count):
        i = dice.randrange(len(name))
        letter = dice.choice(letters)
        edits = [name[:i] + name[i + 1 :], name[:i] + letter + name[i:], name[:i] + letter + name[i + 1 :]]
        if i + 1 < len(name):
            edits.append(name[:i] + name[i + 1] + name[i] + name[i + 2 :])
        found.append(dice.choice(edits))
    return found


@pytest.mark.parametrize("known, count", [(KEYS, 10), (TYPES, 2)], ids=["keys", "instance types"])
def test_nine_of_ten_single_edits_are_found(known: list[str], count: int) -> None:
    dice = random.Random(7)
    tried = [(typo, name) for name in known for typo in typos(name, count, dice) if typo not in known]
    assert len(tried) > 100
    found = sum(name in nearest(typo, known) for typo, name in tried)
    first = sum(nearest(typo, known)[:1] == [name] for typo, name in tried)
    assert found / len(tried) >= 0.97
    assert first / len(tried) >= 0.9 if known is KEYS else first / len(tried) >= 0.75


@pytest.mark.parametrize(
    "name, known, want",
    [
        ("mx_vcpus", KEYS, "max_vcpus"),
        ("max-vcpus", KEYS, "max_vcpus"),
        ("MAX_VCPUS", KEYS, "max_vcpus"),
        ("instance_type", KEYS, "instance_types"),
        ("g5.xlrge", TYPES, "g5.xlarge"),
        ("g5.xalrge", TYPES, "g5.xlarge"),
        ("p4d.24", TYPES, "p4d.24xlarge"),
        ("p5.48xlarg", TYPES, "p5.48xlarge"),
    ],
)
def test_the_best_comes_first(name: str, known: list[str], want: str) -> None:
    assert nearest(name, known)[0] == want


def test_nothing_similar() -> None:
    assert nearest("zzzzzz", KEYS) == []
    assert nearest("", KEYS) == []


def test_no_more_than_asked_for() -> None:
    assert len(nearest("g5.xlrge", TYPES, 2)) == 2
    with pytest.raises(ValueError, match="n must be at least 1"):
        nearest("g5", TYPES, 0)


def test_a_name_given_twice_is_shown_once() -> None:
    assert nearest("g5.xlarg", ["g5.xlarge", "g5.xlarge"]) == ["g5.xlarge"]


def test_the_error_carries_the_name_and_the_nearest() -> None:
    error = UnknownName("instance type", "g5.xlrge", TYPES)
    assert error.name == "g5.xlrge"
    assert error.nearest[0] == "g5.xlarge"
    assert str(error).startswith('unknown instance type "g5.xlrge"; nearest: g5.xlarge, ')
    assert str(UnknownName("cloud", "moon", ["aws"])) == 'unknown cloud "moon"; known: aws'
    assert str(UnknownName("type", "zz", [f"a{i}" for i in range(41)])) == 'unknown type "zz"; nothing similar is known'


def test_nine_of_ten_typos_over_machines_and_accelerators_are_found() -> None:
    dice = random.Random(11)
    known = [each.name for cloud in ("aws", "gcp") for each in machines(cloud)] + list(accelerators())
    wrong = [(typo, name) for name in dice.sample(known, 110) for typo in typos(name, 1, dice) if typo not in known]
    tried = wrong[:100]
    assert len(tried) == 100
    assert sum(name in nearest(typo, known) for typo, name in tried) >= 90
