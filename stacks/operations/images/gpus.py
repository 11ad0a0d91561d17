"""GPUs and driver on which an image has to run: from a stack's environments, or from the command line."""

from collections.abc import Iterator
from dataclasses import dataclass

from accel.catalog.accelerators import accelerators as accelerators_by_name
from accel.catalog.cuda import Version, version
from accel.diagnostics.errors import BadInput
from accel.rules.aws.types import find_machines

from ...environment.images_lock import UNKNOWN, ImageLock, read, uses
from ..stack_files import ReadStack


@dataclass(frozen=True)
class ImageTarget:
    """A place for an image: a compute environment of a stack, or the values from the command line."""

    name: str
    accelerators: tuple[str, ...]
    driver: Version | None


def places(stack: ReadStack, accelerators: tuple[str, ...], driver: Version | None) -> list[ImageTarget]:
    if accelerators:
        return [ImageTarget(stack.name, accelerators, driver)]
    found = [
        ImageTarget(f"{stack.name}/{name}", gpus, driver or known) for name, gpus, known in _environments(stack) if gpus
    ]
    if not found:
        raise BadInput(f"{stack.path}: has no AWS Batch environment with GPUs", "name GPUs: --accelerator nvidia-l4")
    return found


def _environments(stack: ReadStack) -> Iterator[tuple[str, tuple[str, ...], Version | None]]:
    """Yield AWS Batch environments, their GPUs, and the driver of their pinned image if it is known."""
    section = stack.environment.aws
    if section is None:
        return
    lock = read(stack.path.parent) or ImageLock()
    types = dict(uses(section))
    for name, spec in section.environments.items():
        machines = [machine for _, machine in find_machines(spec.instance_types)]
        gpus = dict.fromkeys(each.accelerator for each in machines if each.accelerator)
        image = lock.find(types[name], section.region) if name in types else None
        driver = version(image.nvidia_driver) if image and image.nvidia_driver != UNKNOWN else None
        yield name, tuple(each for each in gpus if each and accelerators_by_name()[each].is_nvidia_gpu), driver
