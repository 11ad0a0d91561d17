"""The command line: `jobs` in a checkout, `accel-jobs` where the wheel is installed."""

import gc
import os
import sys


def main() -> None:
    """Run the command and exit with its code; errors.py lists the codes."""
    # To find its plugins, pydantic reads the metadata of every installed package, which takes a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # The start creates many objects and drops few; garbage collection would take a twentieth of the time.
    gc.set_threshold(50_000)
    try:
        from .cli.main import jobs

        jobs.main()
    except KeyboardInterrupt:  # during the imports; later interrupts are handled inside
        sys.exit(130)


if __name__ == "__main__":
    main()
