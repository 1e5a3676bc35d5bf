"""Telegram, on python-telegram-bot: updates in, messages and drafts out."""
