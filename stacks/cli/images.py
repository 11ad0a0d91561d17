"""`stacks images`: the images that instances start from, newer ones, images of jobs, and old job definitions."""

import re
from pathlib import Path
from typing import Any

import click

from accel.catalog import AmbiguousName, UnavailableName, UnknownName, accelerator
from accel.catalog.cuda import Version as CudaVersion
from accel.catalog.cuda import version
from accel.console.errors import say, warn
from accel.console.options import Settings, WholeNumber, options
from accel.console.output import show, table
from accel.diagnostics.errors import BadInputs, ChangesFound
from jobs.client.targets import load

from ..environment import images_lock
from ..operations.images.build_commands import TAG, build_commands, write_dockerfile
from ..operations.images.compatibility import compatibility
from ..operations.images.definitions import LATEST, deregister, revisions
from ..operations.images.gpus import ImageTarget, places
from ..operations.images.pins import Change, by_folder, image_changes, image_rows, lock_of
from ..operations.stack_files import read_stacks, stack_files
from .verb import OutputVerb, StackVerb

COLUMNS = ("image_type", "region", "image_id", "name", "created", "nvidia_driver", "cuda", "used_by")
CHANGE_COLUMNS = ("image_type", "region", "what", "old", "new")
CHECK_COLUMNS = ("place", "accelerators", "driver", "cuda", "rule", "says")
DEFINITION_COLUMNS = ("definition", "revision", "action", "why")
SHOWN = ("image_id", "name", "created", "nvidia_driver", "cuda")


class Version(click.ParamType[str]):
    """Numbers with dots."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"\d+(\.\d+)*", str(value)):
            self.fail(f"must be a version such as 580.126.09, is {str(value)[:60]!r}", param, ctx)
        return str(value)


class Numbers(click.ParamType[tuple[int, ...]]):
    """Numbers with dots, as numbers."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        try:
            return version(str(value))
        except ValueError:
            self.fail(f"must be a version such as 580.126.09, is {str(value)[:60]!r}", param, ctx)


class Gpu(click.ParamType[str]):
    """An accelerator that CUDA runs on, under any of its names."""

    name = "accelerator"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            gpu = accelerator(str(value))
        except (UnknownName, AmbiguousName, UnavailableName) as error:
            self.fail(str(error), param, ctx)
        if not gpu.is_nvidia_gpu:
            self.fail(f"{gpu.name} is no GPU of NVIDIA's, and runs no CUDA", param, ctx)
        return gpu.name


VERSION = Version()
ACCELERATORS = click.option(
    "--accelerator", "accelerators", type=Gpu(), multiple=True, help="GPU that the image has to run on."
)
DRIVER = click.option("--driver", type=Numbers(), metavar="VERSION", help="NVIDIA driver of the machines.")


class PruneVerb(OutputVerb):
    """A verb with -o and --targets."""

    COMMON = ("output", "targets", *StackVerb.COMMON)


@click.group(invoke_without_command=True)
@click.pass_context
def images(context: click.Context) -> None:
    """Pin the images (AMIs) that instances start from, build those of jobs, and look after job definitions.

    Without a verb: list.
    """
    if context.invoked_subcommand is None:
        show_images(context.obj, ())


images.params += options(OutputVerb.COMMON)
images.context_settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@images.command("list", cls=OutputVerb, short_help="Show the pinned images and the environments that use them.")
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.pass_obj
def list_images(settings: Settings, names: tuple[str, ...]) -> None:
    """Show which images are pinned in images.lock.yaml, and which environments of each STACK use them."""
    show_images(settings, names)


@images.command("upgrade", cls=OutputVerb, short_help="Pin the images that AWS recommends now.")
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option("--nvidia-driver", type=VERSION, help="Driver of the new NVIDIA images, from their release notes.")
@click.option("--cuda", type=VERSION, help="CUDA version of the new NVIDIA images, from their release notes.")
@click.option("--yes", "-y", is_flag=True, help="Write images.lock.yaml. Without it, only show the change.")
@click.option("--expect-no-changes", is_flag=True, help="Exit with 7 if an image is not the recommended one.")
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
    changes: list[Change] = []
    for folder, stacks in by_folder(read_stacks(stack_files(list(names), Path()), settings.strict)):
        lock = lock_of(folder)
        differences = image_changes(stacks, lock, {"nvidia_driver": nvidia_driver, "cuda": cuda})
        changes += differences
        wanted = {(each.image_type, each.region): each.new for each in differences if each.old != each.new}
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
    rows = image_rows(read_stacks(stack_files(list(names), Path()), settings.strict))
    show(rows, settings.output, COLUMNS, COLUMNS, "image_id")


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


@images.command("prune-definitions", cls=PruneVerb, short_help="Deregister old revisions of job definitions.")
@click.option(
    "--keep",
    type=WholeNumber(min=1),
    default=LATEST,
    show_default=True,
    help="Number of revisions of each definition to keep.",
)
@click.option(
    "--unused",
    is_flag=True,
    help="Include definitions that jobs registered and no live job uses; a later job registers its own again.",
)
@click.option("--yes", "-y", is_flag=True, help="Deregister them. Without it, only show them.")
@click.pass_obj
def prune_definitions(settings: Settings, keep: int, unused: bool, yes: bool) -> None:
    """Show the old revisions of the stack's job definitions, and with --yes deregister them.

    The definitions are those of the targets, and those that jobs registered under a target's prefix. Of each the latest
    stay, and whatever a job names that has not ended in a queue of the targets. Interrupted, run it again.
    """
    targets = load(settings.targets)
    for warning in targets.warnings:
        warn(warning, settings)
    batch = [entry.target for entry in targets.entries.values() if entry.target and entry.kind == "aws-batch"]
    every = list(revisions(batch, keep, unused))  # pyright: ignore[reportArgumentType]
    old = [each for each in every if each.goes]
    show([each.row() for each in every], settings.output, DEFINITION_COLUMNS, (*DEFINITION_COLUMNS, "arn"), "arn")
    if not old:
        say("no revision is too old: nothing to deregister")
    elif not yes:
        say(f"{len(old)} of {len(every)} active revisions would be deregistered; --yes does it")
    else:
        for line in deregister(old):
            say(line)
        say(f"deregistered {len(old)} of {len(every)} active revisions")


@images.command("commands", cls=StackVerb, short_help="Print how to build and push images for the stack's GPUs.")
@click.argument("names", metavar="[STACK...]", nargs=-1)
@ACCELERATORS
@DRIVER
@click.option("--tag", default=TAG, show_default=True, help="Tag of the image; the CUDA version is appended.")
@click.option("--pin", is_flag=True, help="Resolve the base image's tag to a digest, and use that.")
@click.option("--write", metavar="FOLDER", help="Write the Dockerfile into a folder; nothing is overwritten.")
@click.pass_obj
def print_commands(
    settings: Settings,
    names: tuple[str, ...],
    accelerators: tuple[str, ...],
    driver: CudaVersion | None,
    tag: str,
    pin: bool,
    write: str | None,
) -> None:
    """Print the commands that build a container image for the GPUs of each STACK and push it to its repositories.

    The base is an image of NVIDIA's with the newest CUDA that the GPUs and the driver in images.lock.yaml run. GPUs are
    those of AWS Batch environments, or what --accelerator names.
    """
    if write:
        click.echo(f"# {write_dockerfile(Path(write))}")
    for stack in read_stacks(stack_files(list(names), Path()), settings.strict):
        for line in build_commands(stack, places(stack, accelerators, driver), tag, pin):
            click.echo(line)


@images.command("check", cls=OutputVerb, short_help="Check an image's CUDA version against GPUs and their driver.")
@click.argument("image")
@click.argument("names", metavar="[STACK...]", nargs=-1)
@ACCELERATORS
@DRIVER
@click.option("--cuda", type=Numbers(), metavar="VERSION", help="CUDA version of the image. Default: from its labels.")
@click.pass_obj
def check_image(
    settings: Settings,
    image: str,
    names: tuple[str, ...],
    accelerators: tuple[str, ...],
    driver: CudaVersion | None,
    cuda: CudaVersion | None,
) -> None:
    """Check whether IMAGE runs on the GPUs of each STACK, of all in this folder where none is named, or on those that
    --accelerator names.

    The CUDA version is what the image's labels and variables tell in its registry (none is asked where --cuda tells
    it), else its name. Exits with 2 where it cannot run; with --strict, where it runs in part.
    """
    if accelerators and not names:
        wanted = [ImageTarget("--accelerator", accelerators, driver)]
    else:
        stacks = read_stacks(stack_files(list(names), Path()), settings.strict)
        wanted = [place for stack in stacks for place in places(stack, accelerators, driver)]
    rows, faults = compatibility(image, wanted, cuda, settings.strict)
    show(rows, settings.output, CHECK_COLUMNS, CHECK_COLUMNS, "place")
    if faults:
        raise BadInputs(faults)
