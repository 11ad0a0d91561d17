"""What an import found."""

from dataclasses import dataclass, field
from typing import Any

from .reading import Json
from .report import Report


@dataclass
class ImportResult:
    """What was imported: its report, the body in the service's own form, and the values of a job file."""

    report: Report
    body: Json
    values: Json = field(default_factory=dict[str, Any])
    region: str = ""
    queue: str = ""
    """Of AWS Batch, and the definition: a name or an ARN."""
    targets: tuple[str, ...] = ()
    """Kinds of targets that this document is for, where its kind is for more."""
    definition: str = ""
