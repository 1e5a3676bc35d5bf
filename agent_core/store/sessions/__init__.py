"""Sessions: who owns them, taking over what dead processes left, setting aside what cannot be read."""
