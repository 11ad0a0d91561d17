"""Choices of the user for an import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.vertex.ai_platform import REPLACEMENTS

Form = Literal["job", "custom-job", "tuning"]
Capacity = Literal["spot", "flex-start"]


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import. Each kind of document uses those that kinds.KINDS lists for it."""

    image: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sources of mounts, by path."""
    flags: Sequence[str] = ()
    """Flags of gcloud, which override those of the file."""
    form: Form = "job"
    k80: str = REPLACEMENTS[0]
    """Accelerator that replaces a K80."""
    capacity: Capacity | None = None
    """Provisioning of machines that are not available on demand."""
    today: date = field(default_factory=date.today)


def k80_replacement(name: str | None) -> str:
    """Return the catalogue's name. Raise BadInput if it is not in REPLACEMENTS."""
    if name is None:
        return REPLACEMENTS[0]
    found = find_accelerator(name)
    if found is None or found.name not in REPLACEMENTS:
        raise BadInput(f"--k80-replacement: is {messages.printable_name(name)}; use one of {', '.join(REPLACEMENTS)}")
    return found.name
