"""Whether an account's quotas hold an environment at its largest."""
