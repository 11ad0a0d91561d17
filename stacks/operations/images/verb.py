"""`stacks images`: which images instances start from, newer ones, images of jobs, and old job definitions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say
from accel.console.options import Settings, options
from accel.console.output import show, table
from accel.diagnostics.errors import ChangesFound

from ...cli.main import StackVerb
from .check import check_image
from .commands import print_commands
from .prune import prune_definitions

if TYPE_CHECKING:
    from ...environment.images_lock import ImageLock, LockedImage
    from ..stack_files import ReadStack

COLUMNS = ("image_type", "region", "image_id", "name", "created", "nvidia_driver", "cuda", "used_by")
CHANGE_COLUMNS = ("image_type", "region", "what", "old", "new")
SHOWN = ("image_id", "name", "created", "nvidia_driver", "cuda")


class Version(click.ParamType[str]):
    """Numbers with dots."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"\d+(\.\d+)*", str(value)):
            self.fail(f"must be a version such as 580.126.09, is {str(value)[:60]!r}", param, ctx)
        return str(value)


VERSION = Version()


class ImagesVerb(StackVerb):
    """With -o."""

    COMMON = ("output", *StackVerb.COMMON)


@click.group(invoke_without_command=True)
@click.pass_context
def images(context: click.Context) -> None:
    """Pin the images (AMIs) that instances start from, build those of jobs, and look after job definitions.

    Without a verb: list.
    """
    if context.invoked_subcommand is None:
        show_images(context.obj, ())


images.params += options(ImagesVerb.COMMON)
images.context_settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
images.add_command(prune_definitions)
images.add_command(print_commands)
images.add_command(check_image)


@images.command("list", cls=ImagesVerb, short_help="Show the pinned images, and who uses them.")
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.pass_obj
def list_images(settings: Settings, names: tuple[str, ...]) -> None:
    """Show which images are pinned in images.lock.yaml, and which environments of each STACK use them."""
    show_images(settings, names)


@images.command("upgrade", cls=ImagesVerb, short_help="Pin the images that AWS recommends now.")
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option("--nvidia-driver", type=VERSION, help="Driver of the new NVIDIA images, from their release notes.")
@click.option("--cuda", type=VERSION, help="CUDA version of the new NVIDIA images, from their release notes.")
@click.option("--yes", "-y", is_flag=True, help="Write images.lock.yaml; without it, only show.")
@click.option("--expect-no-changes", is_flag=True, help="Exit with 7 where an image is not the recommended one.")
@click.pass_obj
def upgrade(
    settings: Settings,
    names: tuple[str, ...],
    nvidia_driver: str | None,
    cuda: str | None,
    yes: bool,
    expect_no_changes: bool,
) -> None:
    """Compare the pinned images with those that AWS recommends now, for every image type and region that each STACK
    uses, and with --yes pin these.

    Nothing is deployed: the next `pulumi up` replaces the instances of the environments. AWS tells the NVIDIA driver
    in its release notes only; --nvidia-driver and --cuda write down what they say.
    """
    from ...environment import images_lock

    changes: list[Change] = []
    for folder, stacks in _by_folder(names, settings.strict):
        lock = images_lock.read(folder) or images_lock.ImageLock()
        found = _changes(stacks, lock, {"nvidia_driver": nvidia_driver, "cuda": cuda})
        changes += found
        wanted = {(each.image_type, each.region): each.new for each in found if each.old != each.new}
        if wanted and yes and not expect_no_changes:
            say(f"written: {images_lock.write(folder, lock.put(wanted))}; `pulumi up` deploys it")
    _show_changes(changes, settings.output)
    for line in [line for each in changes for line in each.remarks()]:
        say(line)
    differ = sum(each.old != each.new for each in changes)
    if not differ:
        say("every image is the recommended one: nothing to change")
    elif expect_no_changes:
        raise ChangesFound(f"{differ} pinned images are not the recommended ones", "stacks images upgrade --yes")
    elif not yes:
        say("nothing was written; --yes writes it")


def show_images(settings: Settings, names: tuple[str, ...]) -> None:
    """Every pinned image, and every one that is used without a pin."""
    from ...environment import images_lock

    rows: list[dict[str, Any]] = []
    for folder, stacks in _by_folder(names, settings.strict):
        lock = images_lock.read(folder) or images_lock.ImageLock()
        used = _used(stacks)
        for image_type, region in sorted(lock.pairs() | set(used)):
            image = lock.find(image_type, region)
            fields = image.model_dump() if image else {"image_id": "not pinned"}
            by = used.get((image_type, region), [])
            rows.append({"image_type": image_type, "region": region, **fields, "used_by": ", ".join(by)})
        rows += [
            {"image_type": "own image", "region": section.region, "image_id": spec.image_id_override, "used_by": name}
            for stack in stacks
            if (section := stack.environment.aws)
            for key, spec in section.environments.items()
            if spec.image_id_override and (name := f"{stack.name}/{key}")
        ]
    show(rows, settings.output, COLUMNS, COLUMNS, "image_id")


@dataclass(frozen=True)
class Change:
    """An image type of a region: what is pinned, None where nothing is, and what AWS recommends."""

    image_type: str
    region: str
    old: "LockedImage | None"
    new: "LockedImage"
    used_by: tuple[str, ...]

    @property
    def driver_major(self) -> bool | None:
        """Whether the driver's major version differs; None where one of the two is not known."""
        majors = [each.nvidia_driver.partition(".")[0] for each in (self.old, self.new) if each]
        return majors[0] != majors[1] if len(majors) == 2 and all(one.isdigit() for one in majors) else None

    def row(self) -> dict[str, Any]:
        """For -o json."""
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
        """What has to be said of the driver."""
        from .recommended import release_notes

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


def _changes(stacks: list["ReadStack"], lock: "ImageLock", told: Mapping[str, str | None]) -> list[Change]:
    from .recommended import recommended

    changes: list[Change] = []
    for (image_type, region), by in sorted(_used(stacks).items()):
        old, new = lock.find(image_type, region), recommended(image_type, region)
        if old and old.image_id == new.image_id:
            new = old  # what was filled in by hand stays
        if image_type == "ECS_AL2023_NVIDIA":
            new = new.model_copy(update={field: value for field, value in told.items() if value})
        changes.append(Change(image_type, region, old, new, tuple(by)))
    return changes


def _show_changes(changes: list[Change], form: str) -> None:
    if form in ("json", "jsonl", "id"):
        show([each.row() for each in changes], form, (), (), "image_id")
        return
    table(
        [
            {
                "image_type": each.image_type,
                "region": each.region,
                "what": field,
                "old": getattr(each.old, field) if each.old else "not pinned",
                "new": "the same" if each.old == each.new else getattr(each.new, field),
            }
            for each in changes
            for field in (SHOWN if each.old != each.new else SHOWN[:1])
        ],
        CHANGE_COLUMNS,
    )


def _used(stacks: list["ReadStack"]) -> dict[tuple[str, str], list[str]]:
    """The environments that use each image type of a region, as <stack>/<environment>."""
    from ...environment.images_lock import uses

    used: dict[tuple[str, str], list[str]] = {}
    for stack in stacks:
        section = stack.environment.aws
        for name, image_type in uses(section) if section else ():
            used.setdefault((image_type, section.region), []).append(f"{stack.name}/{name}")  # pyright: ignore
    return used


def _by_folder(names: tuple[str, ...], strict: bool) -> list[tuple[Path, list["ReadStack"]]]:
    from ..stack_files import read_stacks, stack_files

    found: dict[Path, list[ReadStack]] = {}
    for stack in read_stacks(stack_files(list(names), Path()), strict):
        found.setdefault(stack.path.parent, []).append(stack)
    return list(found.items())
