"""Where a deployed stack and its clouds differ."""
