"""What the commands print with: options, tables, progress, prompts, exit codes."""
