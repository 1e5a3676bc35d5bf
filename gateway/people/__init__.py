"""Who may write, whose accounts belong together, and where a person's conversation goes on."""
