"""The command line: `jobs` in a checkout, `accel-jobs` where the wheel is installed."""

import atexit
import gc
import os
import sys


def main() -> None:
    """Run the command and exit with its code; errors.py lists the codes."""
    # To find its plugins, pydantic reads the metadata of every installed package, which takes a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # The start creates many objects and drops few; garbage collection would take a twentieth of the time. A submit
    # creates 60,000. The interpreter collects once more as it ends, for a fifth of the time, and skips what is frozen.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    try:
        from .cli.main import jobs

        jobs.main()
    except KeyboardInterrupt:  # during the imports; later interrupts are handled inside
        sys.exit(130)


if __name__ == "__main__":
    main()
