"""Clients of the clouds' APIs: errors, retries, rate limits, paging, credentials."""
