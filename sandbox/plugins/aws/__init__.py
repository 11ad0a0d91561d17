"""Stand-in for pulumi-aws: tables from type and function to boto3, by service."""
