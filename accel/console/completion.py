"""Shell completion of values by their placeholder in the help text, so that verbs need not define it."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
from click.types import StringParamType

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, str], Iterator[tuple[str, str]]]
"""Returns the possible values for the text typed so far, each with a short description."""
SHELLS = ("bash", "zsh", "fish")
_COMPLETED: dict[str, Complete | str] = {"FILE": "file", "FOLDER": "dir"}


def complete(placeholder: str, by: Complete) -> None:
    """Register the completion of a placeholder, for the verbs that this process defines from now on."""
    _COMPLETED[placeholder] = by


class CompletedText(StringParamType):
    """A text with known values for shell completion."""

    def __init__(self, values: Complete | str) -> None:
        self.values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        if isinstance(self.values, str):
            return [CompletionItem(incomplete, type=self.values)]
        try:
            values = list(self.values(ctx, incomplete))
        except Exception:  # noqa: BLE001 - a shell shows nothing of what is wrong
            return []
        return [CompletionItem(value, help=about or None) for value, about in values if value.startswith(incomplete)]


def with_completion(param: click.Parameter) -> click.Parameter:
    placeholder = re.search(r"[A-Z]+", param.metavar or "")
    if placeholder and type(param.type) is StringParamType and (values := _COMPLETED.get(placeholder[0])):
        param.type = CompletedText(values)
    return param


def script(shell: str, name: str) -> str:
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    return kind(root, {}, name, f"_{name.replace('-', '_').upper()}_COMPLETE").source()
