"""What is spent of a stack's budgets, and what crossing one stops."""
