"""`stacks validate --online`: what an environment names and does not make, read from the clouds before any create."""
