"""Submission to services without idempotency: one submission key makes one job, whatever the network does.

AWS Batch's SubmitJob and Vertex AI's customJobs.create accept no token by which a repeated request is recognized:
https://github.com/aws/containers-roadmap/issues/2798,
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/create
"""
