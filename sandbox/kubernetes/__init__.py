"""The sandbox's Kubernetes: a real control plane with JobSet and Kueue, and nodes that only look like machines."""
