"""Policies over a whole preview, as a pack of the Pulumi engine and as a command of their own. The table is
policy.table; docs/policy.md shows it."""
