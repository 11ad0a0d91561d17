"""Client of a Kubernetes API server, and the list of servers that may receive credentials."""
