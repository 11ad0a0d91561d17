"""Google Batch: jobs, their attempts and the machines of these."""
