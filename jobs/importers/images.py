"""Images that a document names. Outdated names are corrected, and the report says so."""

import re
from datetime import date

from accel.diagnostics.findings import Finding
from accel.rules.jobs import containers, placeholders
from accel.rules.vertex import images

from .fields import RequestFields


def image_of(given: RequestFields, path: str, image: str, *, today: date | None = None, to: str = "") -> str:
    """Return the image to use, and report the changes. `path` is the field that names the image; `today` is given for
    jobs of Vertex AI, whose prebuilt images end."""
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
"""Name of an image. A project of a domain has a colon (example.com:project).
Source: https://github.com/distribution/reference"""


def _malformed(image: str) -> Finding | None:
    """Return a finding for a name that no registry accepts, which is then not translated."""
    if image.startswith(containers.LOCAL) or _REFERENCE.fullmatch(image):
        return None
    fix = "write registry/repository:tag, the repository in small letters, and all 64 digits of a digest"
    shown = f'"{image[:80]}"' if image.isprintable() else repr(image[:80])
    return containers.IMAGE.finding("image", f"is {shown}, which is no image name", fix)


def _of_domain(image: str) -> str:
    """Convert a project example.com:project to the path that Artifact Registry has for it.
    Source: https://docs.cloud.google.com/artifact-registry/docs/docker/names"""
    host, _, path = image.partition("/")
    project, slash, rest = path.partition("/")
    return f"{host}/{project.replace(':', '/')}{slash}{rest}"


def _plain(image: str) -> list[Finding]:
    return [*containers.image(image), *placeholders.value("image", image)]
