"""AWS Batch of the sandbox: moto's backend with what moto lacks, see departures.py."""
