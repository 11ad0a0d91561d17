"""Google's APIs that a part needs."""

from __future__ import annotations

from collections.abc import Iterable

from ..base import Component
from ..sdk import gcp


def enabled(self: Component, name: str, project: str, services: Iterable[str]) -> list[gcp.projects.Service]:
    """Switches on APIs of the project, by the first part of their names; what needs one depends on it. They stay on
    when the stack goes: others may use them."""
    return [
        gcp.projects.Service(
            f"{name}-{service}",
            project=project,
            service=f"{service}.googleapis.com",
            disable_on_destroy=False,
            opts=self.child(),
        )
        for service in services
    ]
