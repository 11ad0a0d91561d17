"""Permissions to deploy, submit or preview, derived from the resources of an environment."""
