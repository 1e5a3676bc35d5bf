"""What of all that there is to do this gateway does, where several divide it: the decision, and what everybody asks."""
