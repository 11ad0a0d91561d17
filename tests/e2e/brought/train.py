"""A training program that a person may have: it takes flags."""

import sys

print("trained with", *sys.argv[1:], flush=True)
