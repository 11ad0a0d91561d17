"""Findings, faults and errors of a value or a document, with their places."""
