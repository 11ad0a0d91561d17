"""Jobs that wait or run now, and what each stands on."""
