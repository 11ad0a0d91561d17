"""The policies by topic."""
