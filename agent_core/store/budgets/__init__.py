"""Budgets, what model calls hold in them, and what is counted by the day."""
