"""Stand-ins for Pulumi's provider plugins: the engine attaches to them through PULUMI_DEBUG_PROVIDERS."""
