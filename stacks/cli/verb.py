"""Verbs of `stacks`, by the options that they share."""

from accel.console.verb import Verb


class StackVerb(Verb):
    """A verb without the options about jobs."""

    COMMON = ("strict", "debug")


class OutputVerb(StackVerb):
    """A verb with -o."""

    COMMON = ("output", *StackVerb.COMMON)
