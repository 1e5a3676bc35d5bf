"""Tools for the files of a session's workspace."""
