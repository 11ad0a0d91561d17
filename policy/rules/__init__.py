"""Policies by topic."""
