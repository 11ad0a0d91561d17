"""Runs one attempt of a job on a machine that was made for it. Standard library only, and Python 3.8: machines bring
their own. It is shipped in the machine's metadata (see ..__init__) and started by startup.sh.
"""
