"""GPU infrastructure on AWS: one component per file."""
