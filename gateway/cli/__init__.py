"""The ``outspoken`` command: its words, its help, its exit statuses."""
