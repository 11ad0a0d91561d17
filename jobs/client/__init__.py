"""What the command line and the Python API do: submission, waiting, listing, results, cost, allowances."""
