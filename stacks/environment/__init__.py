"""The environment: its config model, and its wiring into components, one module per service. `deploy` and `load` are
imported on first use: the model alone needs no Pulumi."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .deployment import deploy, load

__all__ = ["deploy", "load"]


if not TYPE_CHECKING:  # which would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import deployment

        return getattr(deployment, name)
