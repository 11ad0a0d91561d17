"""Unused resources that cost money or quota."""
