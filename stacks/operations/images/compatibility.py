"""Compatibility of a container image's CUDA with the GPUs and the driver of its machines."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from accel.catalog.cuda import Version, format_driver, version, version_text
from accel.clouds import image_registry
from accel.diagnostics.errors import CloudRefused
from accel.rules.jobs import image_cuda

from .gpus import ImageTarget

if TYPE_CHECKING:
    from accel.diagnostics.findings import Finding


def compatibility(
    image: str, places: Iterable[ImageTarget], cuda: Version | None, strict: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each finding of each place, and the lines of faults: findings with which the image cannot run;
    with `strict`, all. The registry is asked for the image's CUDA where `cuda` is None."""
    cuda = cuda or _registered_cuda(image)
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    for place in places:
        findings = image_cuda.image(image, place.accelerators, cuda=cuda, driver=place.driver)
        known = cuda or image_cuda.version_in_name(image)
        about = {
            "place": place.name,
            "accelerators": ", ".join(place.accelerators),
            "driver": format_driver(place.driver) if place.driver else "unknown",
            "cuda": version_text(known) if known else "unknown",
        }
        rows += [about | _row(each) for each in findings] or [about | {"rule": "", "says": _verdict(known, place)}]
        faults += [
            f"{place.name}: {each.field} {each.text}" for each in findings if strict or each.severity == "reject"
        ]
    return rows, list(dict.fromkeys(faults))


def _registered_cuda(image: str) -> Version | None:
    """Return the CUDA by the image's labels in its registry, if they have one. Raise as image_registry.read does."""
    found = image_registry.read(image).cuda
    try:
        return version(found) if found else None
    except ValueError:
        raise CloudRefused(f"{image}: its labels tell a CUDA that is no version: {str(found)[:60]}") from None


def _verdict(cuda: Version | None, place: ImageTarget) -> str:
    if cuda is None:
        return "not known: neither name nor labels tell its CUDA; --cuda tells it"
    return "runs" if place.driver else "the GPUs are fit; their driver is not known: --driver tells it"


def _row(finding: "Finding") -> dict[str, str]:
    return {"rule": finding.rule, "says": finding.text}
