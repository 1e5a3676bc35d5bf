"""Who may do what, private chats, and joined accounts."""
