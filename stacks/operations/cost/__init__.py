"""What an environment costs, from its model alone."""
