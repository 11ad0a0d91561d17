"""GPU and TPU infrastructure as code, and the jobs that run on it: what everything shares."""
