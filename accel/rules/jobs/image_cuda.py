"""CUDA of an image against its GPUs and the driver of their machines."""

import re
from collections.abc import Iterable

from accel.catalog import cuda as catalog
from accel.catalog.accelerators import Accelerator
from accel.catalog.cuda import Version, format_driver, version_text
from accel.diagnostics.findings import Finding
from accel.rules.gcp import gpus
from accel.rules.table import rule

OLD = rule("container.image.cuda")
DROPPED = rule("container.image.cuda-dropped")
DRIVER = rule("container.image.driver")
MINOR = rule("container.image.driver-minor")
GPU_DRIVER = rule("accelerator.driver")

_NAMED = re.compile(r"(?:cuda|cu)[-:]?(\d{2})[.-]?(\d)")


def version_in_name(image: str) -> Version | None:
    told = _NAMED.search(image.rpartition("/")[2])
    return (int(told[1]), int(told[2])) if told else None


def image(
    name: str,
    accelerators: Iterable[str],
    *,
    cuda: Version | None = None,
    driver: Version | None = None,
    field: str = "image",
) -> list[Finding]:
    """Check against all accelerators and a driver, with at most one finding per rule. `cuda` is the version from the
    image's labels, otherwise from its name; without either, only GPUs and driver are checked."""
    kinds = {each: kind for each in accelerators if (kind := gpus.find_accelerator(each)) and kind.is_nvidia_gpu}
    if not kinds:
        return []
    found = cuda or version_in_name(name)
    said = [*_gpus(name, found, kinds, field), *_driver(name, found, driver, field)] if found else []
    return said + (_new_gpus(driver, kinds) if driver else [])


def everywhere(name: str, places: Iterable[Iterable[str]], field: str = "image") -> list[Finding]:
    """Check the accelerators of several queues. There is no finding if one of them can run the image, since a
    submission to another one gives a warning."""
    found: list[Finding] = []
    for accelerators in places:
        here = image(name, accelerators, field=field)
        if not here:
            return []
        found = found or here
    return found


def _gpus(name: str, cuda: Version, kinds: dict[str, Accelerator], field: str) -> list[Finding]:
    said: dict[str, Finding] = {}
    of = f'is "{name}", of CUDA {version_text(cuda)}'
    for each, kind in kinds.items():
        known = catalog.architecture(kind)
        if known and cuda[:2] < known.first:
            first = version_text(known.first)
            fix = f"use an image of CUDA {first} or later"
            said.setdefault(OLD.id, OLD.finding(field, f"{of}, and {each} wants {first}", fix))
        if known and known.last and cuda[:1] > known.last[:1]:
            last = version_text(known.last)
            fix = f"use an image of CUDA {last} or older"
            said.setdefault(DROPPED.id, DROPPED.finding(field, f"{of}, and {last} was the last for {each}", fix))
    return list(said.values())


def _driver(name: str, cuda: Version, driver: Version | None, field: str) -> list[Finding]:
    release = catalog.release(cuda)
    if driver is None or release is None or driver >= release.driver:
        return []
    of = f'is "{name}", of CUDA {version_text(cuda)}, and the machines\' driver is {format_driver(driver)}'
    if driver < release.least_driver:
        fix = f"use an image of an older CUDA, or machines with driver {format_driver(release.least_driver)} or later"
        return [DRIVER.finding(field, f"{of}; it wants {format_driver(release.least_driver)}", fix)]
    fix = f"use driver {format_driver(release.driver)} or later where kernels are compiled at run time (PTX, Triton)"
    return [MINOR.finding(field, f"{of}; its own is {format_driver(release.driver)}", fix)]


def _new_gpus(driver: Version, kinds: dict[str, Accelerator]) -> list[Finding]:
    for each, kind in kinds.items():
        known = catalog.architecture(kind)
        release = catalog.releases().get(known.first) if known else None
        if release and driver < release.driver:
            message = f"is {each}, and the machines' driver {format_driver(driver)} is older than it"
            fix = f"use machines with driver {format_driver(release.driver)} or later"
            return [GPU_DRIVER.finding("accelerator", message, fix)]
    return []
