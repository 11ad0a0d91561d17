"""An image that a document names, for the report: what is outdated in it is corrected."""

import re
from datetime import date

from accel.diagnostics.findings import Finding
from accel.rules.jobs import containers, placeholders
from accel.rules.vertex import images

from .fields import RequestFields


def image_of(given: RequestFields, path: str, image: str, *, today: date | None = None, to: str = "") -> str:
    """The image to use. `path`: the field that names it; `today`: of Vertex AI's jobs, whose prebuilt images end."""
    name = given.name(path)
    if path in given.values:
        given.keep(path, to)
    if given.report.stopped_by(name):
        return image  # a variable in it, or a sample name: what it will be is not known
    if (malformed := _malformed(image)) and not placeholders.value("image", image):
        given.report.findings(name, [malformed])
        return image
    found = images.image(image, today=today) if today else _plain(image)
    for finding in found:
        if finding.rule == containers.GCR.id:
            image = _of_domain(finding.fix.removeprefix("write "))
            given.report.changed(name, image, finding.message, finding.rule)
        else:
            given.report.findings(name, [finding])
            image = str(finding.replacement) if finding.severity == "translate" else image
    return image


_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?/)?(?:{_PART}:(?={_PART}/))?{_PART}(?:/{_PART})*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
"""Source: https://github.com/distribution/reference; a project of a domain has a colon (example.com:project)."""


def _malformed(image: str) -> Finding | None:
    """What is said of a name that no registry takes, so that nothing is made of it."""
    if image.startswith(containers.LOCAL) or _REFERENCE.fullmatch(image):
        return None
    fix = "write registry/repository:tag, the repository in small letters, and all 64 digits of a digest"
    shown = f'"{image[:80]}"' if image.isprintable() else repr(image[:80])
    return containers.IMAGE.finding("image", f"is {shown}, which is no image name", fix)


def _of_domain(image: str) -> str:
    """Artifact Registry has the project example.com:project as a path.
    Source: https://docs.cloud.google.com/artifact-registry/docs/docker/names"""
    host, _, path = image.partition("/")
    project, slash, rest = path.partition("/")
    return f"{host}/{project.replace(':', '/')}{slash}{rest}"


def _plain(image: str) -> list[Finding]:
    return [*containers.image(image), *placeholders.value("image", image)]
