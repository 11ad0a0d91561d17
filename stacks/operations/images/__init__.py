"""Images from which instances and containers start."""
