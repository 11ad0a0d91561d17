"""`stacks images check`: a container image's CUDA against a stack's GPUs and their driver."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import Settings
from accel.console.output import show
from accel.diagnostics.errors import BadInputs, CloudRefused

from ...cli.main import StackVerb
from .gpus import ACCELERATORS, DRIVER, Numbers, Place, places

if TYPE_CHECKING:
    from accel.catalog.cuda import Version
    from accel.diagnostics.findings import Finding

COLUMNS = ("place", "accelerators", "driver", "cuda", "rule", "says")


class CheckVerb(StackVerb):
    """With -o."""

    COMMON = ("output", *StackVerb.COMMON)


@click.command("check", cls=CheckVerb, short_help="Hold an image's CUDA against GPUs and their driver.")
@click.argument("image")
@click.argument("names", metavar="[STACK...]", nargs=-1)
@ACCELERATORS
@DRIVER
@click.option("--cuda", type=Numbers(), metavar="VERSION", help="CUDA of the image; without it, its labels tell.")
@click.pass_obj
def check_image(
    settings: Settings,
    image: str,
    names: tuple[str, ...],
    accelerators: tuple[str, ...],
    driver: "Version | None",
    cuda: "Version | None",
) -> None:
    """Check whether IMAGE runs on the GPUs of each STACK, of all in this folder where none is named, or on those that
    --accelerator names.

    The CUDA version is what the image's labels and variables tell in its registry (none is asked where --cuda tells
    it), else its name. Exits with 2 where it cannot run; with --strict, where it runs in part.
    """
    from accel.catalog.cuda import dotted, version_text
    from accel.rules.jobs import image_cuda

    from ..stack_files import read_stacks, stack_files

    if accelerators and not names:
        wanted = [Place("--accelerator", accelerators, driver)]
    else:
        stacks = read_stacks(stack_files(list(names), Path()), settings.strict)
        wanted = [place for stack in stacks for place in places(stack, accelerators, driver)]
    told = cuda or _told(image)
    rows: list[dict[str, Any]] = []
    bad: list[str] = []
    for place in wanted:
        found = image_cuda.image(image, place.accelerators, cuda=told, driver=place.driver)
        version = told or image_cuda.version_in_name(image)
        about = {
            "place": place.name,
            "accelerators": ", ".join(place.accelerators),
            "driver": dotted(place.driver) if place.driver else "unknown",
            "cuda": version_text(version) if version else "unknown",
        }
        rows += [about | _said(each) for each in found] or [about | {"rule": "", "says": _verdict(version, place)}]
        bad += [f"{place.name}: {each.field} {each.text}" for each in found if _fatal(each, settings.strict)]
    show(rows, settings.output, COLUMNS, COLUMNS, "place")
    if bad:
        raise BadInputs(list(dict.fromkeys(bad)))


def _told(image: str) -> "Version | None":
    """What the registry tells of an image's CUDA; None where it tells none. Raises as image_registry.read does."""
    from accel.catalog.cuda import version
    from accel.clouds import image_registry

    found = image_registry.read(image).cuda
    try:
        return version(found) if found else None
    except ValueError:
        raise CloudRefused(f"{image}: its labels tell a CUDA that is no version: {str(found)[:60]}") from None


def _verdict(cuda: "Version | None", place: Place) -> str:
    if cuda is None:
        return "not known: neither name nor labels tell its CUDA; --cuda tells it"
    return "runs" if place.driver else "the GPUs are fit; their driver is not known: --driver tells it"


def _said(finding: "Finding") -> dict[str, str]:
    return {"rule": finding.rule, "says": finding.text}


def _fatal(finding: "Finding", strict: bool) -> bool:
    return strict or finding.severity == "reject"
