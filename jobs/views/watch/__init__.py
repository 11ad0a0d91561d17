"""The view of `watch`: draw.py turns plain values into lines, without clock, network or terminal; loop.py looks at
jobs, reads their logs and prints."""
