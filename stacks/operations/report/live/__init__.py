"""Jobs that wait or run now, and what a change does to them."""
