"""`stacks recover`: repair of a state after a run of Pulumi that was killed."""
