"""Pulumi components of accel, by cloud."""
