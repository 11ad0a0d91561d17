"""`stacks recover`: a state that tells the truth again after a run of Pulumi that was killed."""
