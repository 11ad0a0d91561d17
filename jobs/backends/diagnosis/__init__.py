"""Diagnosis of jobs that wait or failed: an engine, a table of causes, and words that several platforms write."""
