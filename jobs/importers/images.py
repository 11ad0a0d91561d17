"""Images that a document names. Outdated names are corrected, and the report says so."""

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
    image = _of_domain(image)
    found = images.image(image, today=today) if today else _plain(image)
    malformed = [finding for finding in found if finding.rule == containers.IMAGE.id]
    if malformed and not placeholders.value("image", image):
        given.report.findings(name, malformed)
        return image
    for finding in found:
        if finding.rule == containers.GCR.id:
            image = finding.fix.removeprefix("write ")
            given.report.changed(name, image, finding.message, finding.rule)
        else:
            given.report.findings(name, [finding])
            image = str(finding.replacement) if finding.severity == "translate" else image
    return image


def _of_domain(image: str) -> str:
    """Convert a project example.com:project of Google's registries to the path that Artifact Registry has for it.
    Source: https://docs.cloud.google.com/artifact-registry/docs/docker/names"""
    host, _, path = image.partition("/")
    project, slash, rest = path.partition("/")
    return f"{host}/{project.replace(':', '/')}/{rest}" if slash and ":" in project else image


def _plain(image: str) -> list[Finding]:
    return [*containers.image(image), *placeholders.value("image", image)]
