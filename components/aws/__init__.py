"""GPU infrastructure on AWS: one component a file."""
