"""Names of jobs."""

import re

from ..model.job import NAME_MAX
from .fields import RequestFields


def job_name(given: RequestFields, path: str) -> str:
    """A name that a job file takes."""
    name = given.text(path) or "imported"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:NAME_MAX] or "imported"
    if path in given.names:
        given.keep(path, "name")
    if plain != name or not given.has(path):
        why = f"a job's name has at most {NAME_MAX} letters, digits, - and _" if path in given.names else "is missing"
        given.report.changed(given.name(path), plain, why)
    return plain
