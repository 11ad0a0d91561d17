"""What a deployed stack promises to jobs and to other stacks."""
