"""Comparison of an account's quotas with an environment at its largest."""
