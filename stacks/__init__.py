"""The environment as data, and its deployment as components and outputs."""
