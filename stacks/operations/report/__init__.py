"""Effects of a change of a stack, in one comment: `stacks report`."""
