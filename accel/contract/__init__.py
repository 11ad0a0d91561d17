"""Contract of a deployed stack with its jobs and with other stacks."""
