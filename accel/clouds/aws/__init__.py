"""AWS clients based on boto3, and the translation of botocore's errors into those of accel."""
