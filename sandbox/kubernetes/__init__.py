"""Kubernetes of the sandbox: a real control plane with JobSet and Kueue, and nodes that only look like machines."""
