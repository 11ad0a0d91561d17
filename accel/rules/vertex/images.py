"""Images of Vertex AI jobs, including those that Google publishes for training."""

from datetime import date

from accel.catalog.vertex import REPOSITORY, images
from accel.diagnostics.findings import Finding
from accel.rules.jobs import containers, placeholders
from accel.rules.table import rule

GONE = rule("vertex.image.gone")
PATCHED = rule("vertex.image.patched")
TAG = rule("vertex.image.tag")
NAME = rule("vertex.image.name")
UNKNOWN = rule("vertex.image.unknown")

_ADVICE = "build an image of your own, from one such as nvcr.io/nvidia/pytorch"


def image(name: str, *, today: date, field: str = "image") -> list[Finding]:
    if name.startswith(containers.LOCAL):
        return []
    of_any = containers.image(name, field) + placeholders.value(field, name)
    found = REPOSITORY.fullmatch(name)
    if found is None:
        return of_any
    # The moving tag is the only one that prebuilt images have.
    return [each for each in of_any if each.rule != containers.LATEST.id] + _prebuilt(
        name, found["name"], found["tag"], today, field
    )


def _prebuilt(name: str, short: str, tag: str | None, today: date, field: str) -> list[Finding]:
    whole = f"{name.removesuffix(tag or '')}:latest"
    said: list[Finding] = []
    if tag != ":latest":
        said.append(TAG.finding(field, f'is "{name}", and its tag has to be latest', f"write {whole}", whole))
    known = images()
    if short not in known:
        longer = [each for each in known if each.startswith(f"{short}.")]
        if longer:
            now = f"{name.removesuffix(tag or '').removesuffix(short)}{longer[-1]}:latest"
            return [
                NAME.finding(field, f'is "{name}", a name without its Python version', f"write {now}", now),
                *_dates(longer[-1], today, field),
            ]
        message = f'is "{name}", which is not among the prebuilt images'
        return [*said, UNKNOWN.finding(field, message, f"make sure that it exists, or {_ADVICE}")]
    return said + _dates(short, today, field)


def _dates(short: str, today: date, field: str) -> list[Finding]:
    found = images()[short]
    if today > found.available_until:
        return [GONE.finding(field, f"is {short}, which was available until {found.available_until}", _ADVICE)]
    if today > found.patched_until:
        return [PATCHED.finding(field, f"is {short}, which was patched until {found.patched_until}", _ADVICE)]
    return []
