"""Spending of a stack's budgets, and the resources that crossing one stops."""
