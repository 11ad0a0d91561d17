"""Selection of jobs: the options of `ls` and `watch`, and the jobs that match them."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import OneOf

from .names import job_name

if TYPE_CHECKING:
    from ..backends.base import Status

PHASES = ("queued", "starting", "running", "succeeded", "failed")
SCANNED = 1000
"""Most jobs of each target that are searched for matches, the newest first."""


@dataclass(frozen=True)
class Choice:
    """Selection criteria; None or empty matches any job."""

    to: str | None = None
    name: str | None = None
    states: tuple[str, ...] = ()
    owner: str | None = None

    @property
    def narrow(self) -> bool:
        """Tell whether a target's own list may have jobs that do not match."""
        return bool(self.name or self.states or self.owner)

    @property
    def ended(self) -> bool:
        return any(state in ("succeeded", "failed") for state in self.states)

    def keeps(self, status: "Status") -> bool:
        named = self.name is None or any(fnmatchcase(name, self.name) for name in (status.name, job_name(status.name)))
        return named and (not self.states or status.phase.lower() in self.states) and self.owner in (None, status.owner)


class _State(OneOf):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(str(value).lower(), param, ctx)


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Add options whose values the command gets as `to`, `name`, `states` and `owner`."""
    for option in (
        click.option("--owner", metavar="WHO", help="Only jobs whose label `owner` (or else `team`) has this value."),
        click.option(
            "--state", "states", type=_State(*PHASES), multiple=True, help="Only jobs in this state. Repeatable."
        ),
        click.option("--name", metavar="GLOB", help="Only jobs whose name matches, such as 'train-*'."),
        click.option("--target", "--to", "to", metavar="TARGET", help="Only jobs of this target."),
    ):
        command = option(command)
    return command
