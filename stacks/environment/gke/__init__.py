"""The `workloads` of a Google Cloud section, and their wiring into components."""
