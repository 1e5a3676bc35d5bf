"""Stored conversations, as programs list, read, change and delete them, and the approvals that wait in them."""
