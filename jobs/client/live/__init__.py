"""Jobs that wait or run now, and the places that each depends on."""
