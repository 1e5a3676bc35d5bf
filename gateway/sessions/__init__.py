"""Conversations: one message after the other, each opened as a turn, followed while it runs, remembered afterwards."""
