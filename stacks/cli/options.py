"""Options that several verbs share, and their types."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


class Share(click.ParamType[float]):
    """A number from 0 to 1."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            share = float(value)
        except ValueError:
            share = math.nan
        if not 0 <= share <= 1:
            self.fail(f"must be a number from 0 to 1, is {str(value)[:60]!r}", param, ctx)
        return share


def utilisation(help: str) -> Callable[[Function], Function]:
    return click.option("--utilisation", type=Share(), default=0.3, show_default=True, metavar="SHARE", help=help)
