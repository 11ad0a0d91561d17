"""What a change of a stack would do, in one comment: `stacks report`."""
