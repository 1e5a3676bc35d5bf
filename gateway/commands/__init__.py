"""The commands that people have in chats, and carrying them out."""
