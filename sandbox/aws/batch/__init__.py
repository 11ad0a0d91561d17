"""AWS Batch as the sandbox keeps it: moto's backend with what moto lacks, see departures.py."""
