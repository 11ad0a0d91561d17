"""What `make bench` runs: ratios from one run, each against a named peer or a limit."""
