"""The images that instances and containers start from."""
