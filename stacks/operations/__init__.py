"""What is done to a deployed stack beside Pulumi's own verbs."""
