"""What of AWS Batch counts as drift, by what AWS answers."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import stacks.operations.images.recommendation as images_recommended
from accel.diagnostics.errors import NotFound
from stacks.environment.images_lock import ImageLock, LockedImage
from stacks.operations.drift.aws import COMPONENT, ENVIRONMENT, Environment, _images, _reservations, _templates  # pyright: ignore[reportPrivateUsage]
from stacks.operations.drift.differences import Drift
from stacks.operations.drift.state import Resource, State
from stacks.operations.inventory.aws import Region

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
NVIDIA = "ECS_AL2023_NVIDIA"
PIN, NEWER, OWN = (f"ami-{digit * 8}" for digit in "123")
LOCK = ImageLock().put({(NVIDIA, "us-east-1"): LockedImage(image_id=PIN)})


@dataclass(frozen=True)
class Answers(Region):
    """A region that has been asked."""

    name: str = "us-east-1"
    all_images: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    all_reservations: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def templates(self) -> dict[str, dict[str, Any]]:
        one = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "one", "LatestVersionNumber": 2}
        return {"lt-1": one, "one": one}

    def images(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        return {key: image for key, image in self.all_images.items() if key in ids}

    def reservations(self) -> dict[str, dict[str, Any]]:
        return self.all_reservations


def live(**resources: Any) -> Environment:
    return Environment("spot", {"computeResources": resources})


def told(found: Iterable[Drift]) -> list[tuple[str, str]]:
    return [(each.what, each.weight) for each in found]


@pytest.mark.parametrize(
    "template, weights",
    [
        (None, []),
        ({"launchTemplateId": "lt-1", "version": "2"}, []),
        ({"launchTemplateName": "one", "version": "2"}, []),
        ({"launchTemplateId": "lt-1", "version": "1"}, ["changed"]),
        ({"launchTemplateName": "one", "version": "1"}, ["changed"]),
        ({"launchTemplateId": "lt-1", "version": "$Latest"}, ["unknown"]),
        ({"launchTemplateId": "lt-1"}, ["unknown"]),
        ({"launchTemplateId": "lt-2", "version": "1"}, ["broken"]),
    ],
)
def test_launch_templates(template: dict[str, str] | None, weights: list[str]) -> None:
    found = _templates(Answers(), [live(launchTemplate=template)])
    assert [each.weight for each in found] == weights


def state(**spec: Any) -> State:
    made = Resource(COMPONENT, "spot", "", {"spec": spec}, {}, "")
    environment = Resource(ENVIRONMENT, "spot", "arn:…/spot-1", {"region": "us-east-1"}, {}, "spot")
    return State((made, environment))


@pytest.mark.parametrize(
    "image, spec, lock, expected",
    [
        ({"imageIdOverride": PIN}, {}, LOCK, [("newer image", "soon")]),
        ({"imageIdOverride": NEWER}, {}, None, []),
        ({"imageIdOverride": NEWER}, {}, LOCK, [("image", "changed")]),
        ({}, {}, LOCK, [("image", "changed")]),
        # AWS Batch has chosen it.
        ({}, {}, None, []),
        ({"batchImageStatus": "LATEST"}, {}, None, []),
        ({"batchImageStatus": "UPDATE_AVAILABLE"}, {}, None, [("newer image", "soon")]),
        # Its author's own: neither the pin nor AWS's advice is for it.
        ({"imageIdOverride": OWN}, {"image_id_override": OWN}, LOCK, [("image", "soon")]),
        ({"imageIdOverride": "ami-4"}, {"image_id_override": "ami-4"}, LOCK, [("image", "broken")]),
    ],
)
def test_images(
    image: dict[str, str],
    spec: dict[str, Any],
    lock: ImageLock | None,
    expected: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(images_recommended, "recommended_image", lambda *_: LockedImage(image_id=NEWER))
    region = Answers(all_images={PIN: {}, NEWER: {}, OWN: {"DeprecationTime": "2026-01-01T00:00:00.000Z"}})
    environment = live(ec2Configuration=[{"imageType": NVIDIA, **image}])
    assert told(_images(region, [environment], state(**spec), lock, NOW)) == expected


def test_advice_that_cannot_be_read_keeps_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(image_type: str, region: str) -> LockedImage:
        raise NotFound(f"{image_type}: AWS recommends no image in {region}")

    monkeypatch.setattr(images_recommended, "recommended_image", none)
    environment = live(ec2Configuration=[{"imageType": NVIDIA, "imageIdOverride": NEWER}])
    found = _images(Answers(), [environment], state(), LOCK, NOW)
    assert told(found) == [("not readable", "unknown"), ("image", "broken"), ("image", "changed")]


@pytest.mark.parametrize(
    "reservation, weights",
    [
        (None, ["broken"]),
        ({"State": "expired"}, ["broken"]),
        ({"State": "active"}, []),
        ({"State": "scheduled", "EndDate": NOW + timedelta(days=30)}, []),
        ({"State": "active", "EndDate": NOW + timedelta(days=3)}, ["soon"]),
    ],
)
def test_reservations(reservation: dict[str, Any] | None, weights: list[str]) -> None:
    region = Answers(all_reservations={"cr-1": reservation} if reservation else {})
    deployed = state(capacity_reservation={"id": "cr-1"})
    assert [each.weight for each in _reservations(region, deployed, NOW, timedelta(days=14))] == weights
    assert list(_reservations(Answers("us-west-2"), deployed, NOW, timedelta(days=14))) == []
