"""Vertex AI: custom jobs, tuning jobs and the machines that they run on."""
