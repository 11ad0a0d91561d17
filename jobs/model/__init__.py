"""What a job file says: Job, its fields, sweeps, and the document they are read from."""
