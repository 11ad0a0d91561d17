"""Shared foundation of GPU and TPU infrastructure as code and of the jobs that run on it."""
