"""Tools that operators write in Python: found, described and run, and never imported by the gateway itself."""
