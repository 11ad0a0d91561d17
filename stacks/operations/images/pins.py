"""The pinned images (AMIs) of stacks: their users, and AWS's current recommendation."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...environment import images_lock
from ...environment.images_lock import ImageLock, LockedImage, uses
from ..stack_files import ReadStack
from .recommendation import recommended_image, release_notes


@dataclass(frozen=True)
class Change:
    """An image type of a region: its pin, or None, and AWS's recommendation."""

    image_type: str
    region: str
    old: LockedImage | None
    new: LockedImage
    used_by: tuple[str, ...]

    @property
    def driver_major(self) -> bool | None:
        """Return whether the driver's major version differs; None where one of the two is unknown."""
        majors = [each.nvidia_driver.partition(".")[0] for each in (self.old, self.new) if each]
        return majors[0] != majors[1] if len(majors) == 2 and all(one.isdigit() for one in majors) else None

    def row(self) -> dict[str, Any]:
        return {
            "image_type": self.image_type,
            "region": self.region,
            "image_id": self.new.image_id,
            "changed": self.old != self.new,
            "driver_major_changed": self.driver_major,
            "old": self.old.model_dump() if self.old else None,
            "new": self.new.model_dump(),
            "used_by": list(self.used_by),
        }

    def remarks(self) -> list[str]:
        if self.old == self.new or self.image_type != "ECS_AL2023_NVIDIA":
            return []
        place = f"{self.image_type} in {self.region}"
        if self.driver_major and self.old:
            change = f"{self.old.nvidia_driver} to {self.new.nvidia_driver}"
            return [f"warning: {place}: a MAJOR change of the NVIDIA driver, {change}: jobs' CUDA must support it"]
        notes = release_notes(self.new)
        if self.driver_major is None and self.new.nvidia_driver == "unknown" and notes:
            return [f"{place}: AWS tells the NVIDIA driver in the release notes only: {notes}"]
        return []


def image_changes(stacks: list[ReadStack], lock: ImageLock, versions: Mapping[str, str | None]) -> list[Change]:
    """Compare each image type and region in use. `versions`: driver and CUDA of NVIDIA images, from release notes."""
    changes: list[Change] = []
    for (image_type, region), by in sorted(_used(stacks).items()):
        old, new = lock.find(image_type, region), recommended_image(image_type, region)
        if old and old.image_id == new.image_id:
            new = old  # what was filled in by hand stays
        if image_type == "ECS_AL2023_NVIDIA":
            new = new.model_copy(update={field: value for field, value in versions.items() if value})
        changes.append(Change(image_type, region, old, new, tuple(by)))
    return changes


def _used(stacks: list[ReadStack]) -> dict[tuple[str, str], list[str]]:
    """Return the environments that use each image type of a region, as <stack>/<environment>."""
    used: dict[tuple[str, str], list[str]] = {}
    for stack in stacks:
        section = stack.environment.aws
        for name, image_type in uses(section) if section else ():
            used.setdefault((image_type, section.region), []).append(f"{stack.name}/{name}")  # pyright: ignore
    return used


def lock_of(folder: Path) -> ImageLock:
    return images_lock.read(folder) or ImageLock()


def by_folder(stacks: list[ReadStack]) -> list[tuple[Path, list[ReadStack]]]:
    folders: dict[Path, list[ReadStack]] = {}
    for stack in stacks:
        folders.setdefault(stack.path.parent, []).append(stack)
    return list(folders.items())


def image_rows(stacks: list[ReadStack]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for folder, members in by_folder(stacks):
        lock = lock_of(folder)
        used = _used(members)
        for image_type, region in sorted(lock.pairs() | set(used)):
            image = lock.find(image_type, region)
            fields = image.model_dump() if image else {"image_id": "not pinned"}
            by = used.get((image_type, region), [])
            rows.append({"image_type": image_type, "region": region, **fields, "used_by": ", ".join(by)})
        rows += [
            {"image_type": "own image", "region": section.region, "image_id": spec.image_id_override, "used_by": name}
            for stack in members
            if (section := stack.environment.aws)
            for key, spec in section.environments.items()
            if spec.image_id_override and (name := f"{stack.name}/{key}")
        ]
    return rows
