"""What Vertex AI allows, and AI Platform Training before it."""
