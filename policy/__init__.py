"""Policies over a whole preview: a pack of Pulumi's engine, and a command. docs/policy.md shows policy.table."""
