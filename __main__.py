"""The Pulumi program: one environment, as its stack's config says."""

import atexit
import gc

# A run makes many objects and drops few, so collecting them is a tenth of a preview's time for nothing. The interpreter
# collects once more as it ends, whether or not collection is on; it skips what is frozen.
gc.disable()
atexit.register(gc.freeze)

from stacks.environment import deploy, load  # noqa: E402 - the imports are most of what would be collected

deploy(load())
