"""What GKE, Kubernetes and Kueue allow."""
