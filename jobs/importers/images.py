"""An image that a document names, for the report: what is outdated in it is corrected."""

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
    found = images.image(image, today=today) if today else _plain(image)
    for finding in found:
        if finding.rule == containers.GCR.id:
            image = finding.fix.removeprefix("write ")
            given.report.changed(name, image, finding.message, finding.rule)
        else:
            given.report.findings(name, [finding])
            image = str(finding.replacement) if finding.severity == "translate" else image
    return image


def _plain(image: str) -> list[Finding]:
    return [*containers.image(image), *placeholders.value("image", image)]
