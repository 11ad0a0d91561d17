import pytest

from accel.catalog import UnavailableName, UnknownName, check_place, regions, where, zones

A2_ZONES = {
    "asia-northeast1": ("a", "c"), "asia-northeast3": ("a", "b"), "asia-southeast1": ("b", "c"),
    "europe-west4": ("a", "b"), "me-west1": ("a", "c"), "us-central1": ("a", "b", "c", "f"), "us-east1": ("b",),
    "us-west1": ("b",), "us-west3": ("b",), "us-west4": ("b",),
}  # fmt: skip
A2_ULTRA_ZONES = {
    "asia-southeast1": ("c",), "europe-west4": ("a",), "us-central1": ("a", "c"), "us-east4": ("c",),
    "us-east5": ("a", "b"),
}  # fmt: skip


@pytest.mark.parametrize("machine, wanted", [("a2-highgpu-1g", A2_ZONES), ("a2-ultragpu-1g", A2_ULTRA_ZONES)])
def test_zones_of_a2(machine: str, wanted: dict[str, tuple[str, ...]]) -> None:
    assert where("gcp", machine) == {
        region: tuple(f"{region}-{letter}" for letter in letters) for region, letters in wanted.items()
    }
    for region in wanted:
        assert zones("gcp", region, machine) == where("gcp", machine)[region]
        check_place("gcp", machine, region)


def test_regions() -> None:
    assert {"us-central1", "europe-west4"} <= set(regions("gcp"))
    assert {"us-east-1", "us-gov-west-1"} <= set(regions("aws"))
    assert list(regions("aws")) == sorted(regions("aws"))


def test_a_region_may_be_all_that_is_known() -> None:
    assert zones("gcp", "us-central1", "g4-standard-48") == ()
    check_place("gcp", "g4-standard-48", "us-central1")


def test_a_slice_of_no_known_region_is_nowhere() -> None:
    assert where("gcp", "v5p-13824") == {}
    with pytest.raises(UnavailableName, match="v5p-13824: no region is known to offer it"):
        check_place("gcp", "v5p-13824", "us-central1")


def test_the_answer_is_the_callers_own() -> None:
    where("gcp", "a2-highgpu-1g").clear()
    assert where("gcp", "a2-highgpu-1g")


def test_slices_attachments_and_zone_ids() -> None:
    assert "us-central1-a" in zones("gcp", "us-central1", "v5litepod-16")
    assert "us-central1-a" in zones("gcp", "us-central1", "n1+nvidia-tesla-t4x1")
    assert all(zone.startswith("use1-az") for zone in zones("aws", "us-east-1", "g5.xlarge"))


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: check_place("gcp", "a2-highgpu-1g", "us-central1-a"), UnavailableName,
         "us-central1-a is a zone; the region is us-central1"),
        (lambda: check_place("aws", "g5.xlarge", "us-east-1a"), UnavailableName,
         "us-east-1a is a zone; the region is us-east-1"),
        (lambda: check_place("aws", "g5.xlarge", "use1-az1"), UnavailableName,
         "use1-az1 is a zone; the region is us-east-1"),
        (lambda: check_place("gcp", "a2-highgpu-1g", "us-centrall"), UnknownName,
         'unknown region "us-centrall"; nearest: us-central1'),
        (lambda: check_place("gcp", "a2-highgpu-1g", "europe-west9"), UnavailableName,
         "a2-highgpu-1g is not offered in europe-west9; nearest: europe-west4, "),
        (lambda: check_place("aws", "p5.48xlarge", "eu-west-3"), UnavailableName,
         "p5.48xlarge is not offered in eu-west-3; nearest: eu-"),
        (lambda: zones("gcp", "us-east1", "a2-ultragpu-1g"), UnavailableName,
         "a2-ultragpu-1g is not offered in us-east1; nearest: us-east4, us-east5, "),
        (lambda: where("gcp", "a2-higpu-1g"), UnknownName, 'unknown machine type "a2-higpu-1g"; nearest: a2-highgpu'),
        (lambda: where("azure", "x"), UnknownName, 'unknown cloud "azure"'),
        (lambda: regions("azure"), UnknownName, 'unknown cloud "azure"'),
    ],
)  # fmt: skip
def test_wrong_places_are_refused_with_the_nearest(call, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as error:
        call()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("zone", ["us-east1-a", "europe-west1-a"])
@pytest.mark.parametrize("machine", ["n1+nvidia-tesla-t4x1", "g2-standard-8"])
def test_not_every_region_has_a_zone_a(zone: str, machine: str) -> None:
    known = zones("gcp", zone[:-2], machine)
    assert known and zone not in known


def test_the_error_carries_the_nearest_regions() -> None:
    with pytest.raises(UnavailableName) as error:
        check_place("gcp", "a2-highgpu-1g", "us-east4")
    assert error.value.nearest[0] == "us-east1"
    assert len(error.value.nearest) == 3
