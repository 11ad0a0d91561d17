"""The `stacks` command: its verbs."""
