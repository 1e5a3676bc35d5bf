"""Which node works on what, where several serve one database."""
