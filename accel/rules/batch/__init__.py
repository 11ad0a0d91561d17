"""What Google Batch allows."""
