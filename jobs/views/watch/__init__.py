"""What `watch`, `logs` and the HTML report make of statuses and of the lines by which jobs tell how they go.

Plain values in, plain text out: no clock, no network, no terminal. jobs/cli asks and prints.
"""
