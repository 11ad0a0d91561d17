"""Clients of the clouds' APIs: errors, retries, rates, paging, credentials."""
