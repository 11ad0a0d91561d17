"""pulumi-kubernetes as the engine sees it, over a real API server."""
