"""The contents of a job file: Job, its fields, sweeps, and the document they are read from."""
