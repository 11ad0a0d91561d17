"""`stacks validate --online`: resources that an environment names and does not create, read before any create."""
