"""The command line: `jobs` in a checkout, `accel-jobs` where the wheel is installed."""

import gc
import os
import sys


def main() -> None:
    """Runs the command and exits with its code; errors.py lists the codes."""
    # Looking for pydantic's plugins reads the metadata of every installed package: a tenth of a start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # A start makes many objects and drops few: looking through them again and again takes a twentieth of it.
    gc.set_threshold(50_000)
    try:
        from .cli.main import jobs

        jobs.main()
    except KeyboardInterrupt:  # during the imports; later ones are handled inside
        sys.exit(130)


if __name__ == "__main__":
    main()
