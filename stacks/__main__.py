"""`python -m stacks`, and `stacks` where the wheel is installed."""

from .cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
