"""Conversion of queues, environments and definitions made by hand into an environment of this project and an import
file.
"""
