"""Agent that runs one attempt of a job on a machine that was created for it.

It uses only the standard library of Python 3.8, because machines bring their own Python. It is in the machine's
metadata (see ..__init__), and startup.sh starts it.
"""
