"""The AWS section of an environment, and its wiring into components."""
