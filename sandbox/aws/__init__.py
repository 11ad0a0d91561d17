"""AWS of the sandbox: moto, what moto lacks, and a Batch that runs jobs."""
