"""Removing a compute environment that AWS does not let go."""
