"""Output of the commands: options, tables, progress, prompts, exit codes."""
