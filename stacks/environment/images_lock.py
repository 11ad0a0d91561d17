"""`images.lock.yaml`, beside the stacks' config files: the machine image (AMI) of each image type and region. A person
may read and edit it. Driver and CUDA of an image, which no API returns, may be filled in by hand."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from accel.catalog.aws_partitions import REGION
from accel.catalog.nearest import nearest
from accel.diagnostics import yaml_positions
from accel.diagnostics.errors import BadInputs
from accel.diagnostics.faults import Fault, parse
from accel.diagnostics.messages import printable_name
from accel.files import write_output
from accel.rules.aws.images import IMAGE_TYPES, image_lock

if TYPE_CHECKING:
    from .aws.config import Aws

LOCK = "images.lock.yaml"
UNKNOWN = "unknown"
_HEAD = """\
# The image (AMI) that instances start from, by image type and region, for every stack in this folder.
# Written by `stacks images upgrade --yes`. AWS tells nvidia_driver and cuda in its release notes only.
"""


def _image_type(value: str) -> str:
    if value not in IMAGE_TYPES:
        near = nearest(value, IMAGE_TYPES, 1) or IMAGE_TYPES
        raise ValueError(f"no image type {printable_name(value)}; nearest: {', '.join(near)}")
    return value


ImageType = Annotated[str, AfterValidator(_image_type)]
Region = Annotated[str, Field(pattern=f"^{REGION}$")]


class LockedImage(BaseModel):
    """One image. An unknown value is `unknown`; `created` is AWS's creation time, in ISO 8601."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    image_id: str = Field(pattern=r"^ami-([0-9a-f]{8}|[0-9a-f]{17})$")
    name: str = UNKNOWN
    created: str = UNKNOWN
    nvidia_driver: str = UNKNOWN
    cuda: str = UNKNOWN


class ImageLock(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    images: dict[ImageType, dict[Region, LockedImage]] = Field(default_factory=dict)

    def find(self, image_type: str, region: str) -> LockedImage | None:
        return self.images.get(image_type, {}).get(region)

    def pairs(self) -> set[tuple[str, str]]:
        return {(image_type, region) for image_type, regions in self.images.items() for region in regions}

    def put(self, found: Mapping[tuple[str, str], LockedImage]) -> "ImageLock":
        """Return the lock with these images in place of its own, sorted."""
        merged = {pair: self.find(*pair) for pair in self.pairs()} | dict(found)
        images: dict[str, dict[str, Any]] = {}
        for (image_type, region), image in sorted(merged.items()):
            images.setdefault(image_type, {})[region] = image
        return ImageLock.model_validate({"images": images})


def read(folder: Path) -> ImageLock | None:
    """Return None where the folder has no such file. Raise BadInputs, every fault with its line."""
    path = folder / LOCK
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInputs([f"{path}: cannot be read: {error.strerror}"]) from None
    try:
        # Versions are text: 580.10 is not 580.1.
        tree = yaml_positions.read(data, as_written=frozenset({"images"}))
    except yaml_positions.Fault as fault:
        raise BadInputs([f"{path}:{fault.line}: {fault.words}"]) from None

    def placed(fault: Fault) -> str:
        return f"{path}:{tree.line(fault.path)}: {fault}"

    faults = [f"{path}:{fault.line}: {fault.words}" for fault in tree.faults]
    lock, wrong = parse(ImageLock, tree.value)
    faults += [placed(fault) for fault in wrong]
    if lock is None or faults:
        raise BadInputs(faults)
    return lock


def write(folder: Path, lock: ImageLock) -> Path:
    import yaml

    text = _HEAD + yaml.safe_dump(lock.model_dump(), sort_keys=False)
    path = folder / LOCK
    write_output("--yes", path, text, 0o644)
    return path


def uses(section: "Aws") -> Iterator[tuple[str, str]]:
    """Yield environments and image types, outdated ones translated; none that has, or keeps, an image of its own."""
    for name, spec in section.environments.items():
        keeps = spec.adopted.keeps if spec.adopted else ()
        if spec.image_id_override is None and "image" not in keeps:
            image_type = spec.settled().image_type
            if image_type in IMAGE_TYPES:
                yield name, image_type


def unlocked_images(section: "Aws", lock: ImageLock | None) -> list[Fault]:
    pinned = lock.pairs() if lock else None
    return [
        Fault(("environment", "aws", "environments", name, one.field), f"{one.text} [{one.rule}]")
        for name, image_type in uses(section)
        for one in image_lock(image_type, section.region, pinned)
    ]


def pinned_images(section: "Aws") -> dict[str, str]:
    """Return AMIs by environment. Raise pulumi.RunError with the faults of the file."""
    import pulumi

    try:
        # The mocks of unit tests have no root, and read no lock.
        root: str | None = pulumi.get_root_directory()
        lock = read(Path(root)) if root else None
    except BadInputs as bad:
        raise pulumi.RunError("\n".join(bad.messages)) from None
    found = {name: lock.find(image_type, section.region) for name, image_type in uses(section)} if lock else {}
    return {name: image.image_id for name, image in found.items() if image}
