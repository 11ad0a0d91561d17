"""Differences between a deployed stack and its clouds."""
