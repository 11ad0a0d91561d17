"""Rules of GKE, Kubernetes and Kueue."""
