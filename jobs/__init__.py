"""Submits workloads to what a stack created, and to this machine."""
