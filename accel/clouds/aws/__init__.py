"""Clients of AWS by boto3, and what botocore raises as the errors of accel."""
