"""What exists in a cloud, listed once for the commands that look around there: a cloud a module."""
