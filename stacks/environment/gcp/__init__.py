"""The Google Cloud section of an environment, and its wiring into components."""
