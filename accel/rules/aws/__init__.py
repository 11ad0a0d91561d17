"""What AWS allows: AWS Batch and what stands around it."""
