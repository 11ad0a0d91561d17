"""Cost of an environment, from its model alone."""
