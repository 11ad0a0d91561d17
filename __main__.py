"""The Pulumi program: one environment, as its stack's config says."""

import atexit
import gc
import os

# A run makes many objects and drops few, so collecting them is a tenth of a preview's time for nothing. The interpreter
# collects once more as it ends, whether or not collection is on; it skips what is frozen.
gc.disable()
atexit.register(gc.freeze)

import pulumi  # noqa: E402 - the imports are most of what would be collected

from stacks.environment import deploy, load  # noqa: E402


def _send_nothing(*_: object, **__: object) -> None:
    """The SDK tells the engine each step of each resource and waits for its answer: 7 % of a preview. The engine shows
    these messages with --debug alone, and a program does not learn whether that was asked for."""


if not os.environ.get("ACCEL_SDK_DEBUG"):
    pulumi.log.debug = _send_nothing

deploy(load())
