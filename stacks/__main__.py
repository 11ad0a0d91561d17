"""`python -m stacks`."""

from .cli import main

main()
