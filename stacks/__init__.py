"""What is deployed: the environment as data, and how it becomes components and outputs."""
