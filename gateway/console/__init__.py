"""The operators' console at ``/console``: what goes on now, what went wrong, what waits, and what can be done about it by hand."""
