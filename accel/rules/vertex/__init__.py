"""Rules of Vertex AI, and of AI Platform Training before it."""
