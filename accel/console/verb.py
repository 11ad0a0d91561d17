"""A verb: a command that also accepts the options of every verb."""

from typing import Any

import click

from .completion import with_completion
from .options import COMMON, options


class Verb(click.Command):
    """A command with the common options after its own."""

    COMMON = COMMON

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*map(with_completion, self.params), *options(self.COMMON)]
        self.context_settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
