"""Rules of AWS: AWS Batch and related services."""
