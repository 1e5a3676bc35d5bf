"""One file a revision; the list of them is `migrations.REVISIONS`."""
