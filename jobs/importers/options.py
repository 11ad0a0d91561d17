"""What the user chose for an import."""

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
    """Each kind of document uses those that are for it: kinds.KINDS."""

    image: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Source by path."""
    flags: Sequence[str] = ()
    """Of gcloud; they win over the file's."""
    form: Form = "job"
    k80: str = REPLACEMENTS[0]
    """What replaces a K80."""
    capacity: Capacity | None = None
    """How to have machines that cannot be had on demand."""
    today: date = field(default_factory=date.today)


def k80_replacement(name: str | None) -> str:
    """The accelerator by the catalogue's name. Raises BadInput."""
    if name is None:
        return REPLACEMENTS[0]
    found = find_accelerator(name)
    if found is None or found.name not in REPLACEMENTS:
        raise BadInput(f"--k80-replacement: is {messages.printable_name(name)}; use one of {', '.join(REPLACEMENTS)}")
    return found.name
