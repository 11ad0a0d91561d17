"""What runs inside a Kubernetes cluster: drivers, health, queues, volumes. One component a file."""
