"""Images: families of Google's own projects (images.yaml), and those that a project creates."""

import re
from functools import cache
from pathlib import Path

import yaml

from ..errors import ApiError
from ..world import Call, Collection, Json
from .api import compute_collection

_LINK = re.compile(r"(?:https://(?:www|compute)\.googleapis\.com/(?:compute/v1/)?)?(?:projects/([^/]+)/)?(.+)")
_ROOT = "https://www.googleapis.com/compute/v1/"


@cache
def public_images() -> dict[str, dict[str, Json]]:
    """Return the images of each of Google's projects, by name."""
    rows: Json = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return {
        project: {(image := _image(project, row, family, n))["name"]: image for n, family in enumerate(row["families"])}
        for project, row in rows.items()
    }


def _image(project: str, row: Json, family: str, number: int) -> Json:
    name = f"{family}-{row['version']}"
    day = row["version"].removeprefix("v")
    return {
        "kind": "compute#image",
        "id": str(5_000_000_000_000_000_000 + 1_000 * len(project) + number),
        "name": name,
        "family": family,
        "architecture": "ARM64" if "arm64" in family else "X86_64",
        "creationTimestamp": f"{day[:4]}-{day[4:6]}-{day[6:]}T00:00:00.000-07:00",
        "diskSizeGb": str(row["disk_gb"]),
        "status": "READY",
        "sourceType": "RAW",
        "selfLink": f"{_ROOT}projects/{project}/global/images/{name}",
    }


@cache
def driver_of(project: str) -> str:
    """Return whether images of a project bring an NVIDIA driver: "built-in", "asked" or "none"."""
    rows: Json = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return rows.get(project, {"driver": "none"})["driver"]


def _images(call: Call, project: str) -> list[Json]:
    own = call.world.below("compute", f"projects/{project}/global/images")
    return [*public_images().get(project, {}).values(), *own]


def of_family(call: Call, project: str, family: str) -> Json:
    """Return the newest image of a family that is not deprecated. Wording:
    https://github.com/skypilot-org/skypilot/issues/2409."""
    found = [each for each in _images(call, project) if each.get("family") == family and "deprecated" not in each]
    if not found:
        raise ApiError(404, f"The resource 'projects/{project}/global/images/family/{family}' was not found")
    return max(found, key=lambda image: image["creationTimestamp"])


def resolve_image(call: Call, source: str) -> Json:
    """Return the image of a link or a part of one, which names an image or a family. Raises ApiError."""
    found = _LINK.fullmatch(source)
    project, rest = (found[1] or call.path["project"], found[2]) if found else (call.path["project"], source)
    if family := re.fullmatch(r"(?:global/images/)?family/([^/]+)", rest):
        return of_family(call, project, family[1])
    name = rest.rpartition("/")[2]
    image = next((each for each in _images(call, project) if each["name"] == name), None)
    if image is None:
        raise ApiError(404, f"The resource 'projects/{project}/global/images/{name}' was not found")
    return image


def _listed(call: Call) -> list[Json]:
    return _images(call, call.path["project"])


def from_family(call: Call, collection: Collection) -> Json:
    return of_family(call, call.path["project"], call.path["family"])


def public(call: Call, project: str) -> bool:
    """Return whether a call reads images of one of Google's projects, which everybody may."""
    return call.method.collection == "compute.images" and call.method.http == "GET" and project in public_images()


COLLECTIONS = (compute_collection("images", "Image", listed=_listed),)
OWN = {"compute.images.getFromFamily": from_family}
