"""Parts in chats, and what platforms and adapters said."""
