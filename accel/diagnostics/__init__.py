"""Findings, faults and errors: what is wrong with a value or a document, and where."""
