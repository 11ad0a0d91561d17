"""What whoever deploys, submits or previews may have to do: read off the resources of an environment."""
