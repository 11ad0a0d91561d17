"""A client of a Kubernetes API server, and which servers may be sent credentials."""
