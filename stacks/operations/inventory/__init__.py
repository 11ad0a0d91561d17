"""Existing resources of a cloud, for the commands that list them: one module per cloud."""
