"""Diagnosis of jobs that wait or failed: one engine, one table of causes, and the words that several platforms
write."""
