"""Result of an import."""

from dataclasses import dataclass, field
from typing import Any

from .reading import Json
from .report import Report


@dataclass
class ImportResult:
    """Report of an import, the body in the service's own form, and the values of a job file."""

    report: Report
    body: Json
    values: Json = field(default_factory=dict[str, Any])
    region: str = ""
    queue: str = ""
    """Queue of AWS Batch; like `definition`, a name or an ARN."""
    targets: tuple[str, ...] = ()
    """Kinds of targets that this document is for, if its kind is for more."""
    definition: str = ""
