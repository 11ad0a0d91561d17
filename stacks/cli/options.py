"""Types of options that several verbs share."""

import math
from typing import Any

import click


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
