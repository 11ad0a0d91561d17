"""Clients of Google's REST APIs."""
