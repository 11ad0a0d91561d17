"""What backends of services without idempotency share: one submission key makes one job, whatever the network does.

AWS Batch's SubmitJob and Vertex AI's customJobs.create take no token by which a service would know a request again.
Sources: https://github.com/aws/containers-roadmap/issues/2798,
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/create
"""
