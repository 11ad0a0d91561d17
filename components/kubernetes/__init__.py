"""Components inside a Kubernetes cluster: drivers, health, queues, volumes. One component per file."""
