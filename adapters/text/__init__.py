"""Markdown as models write it, and what chat platforms can show of it: a tree, flat styled text, parts within a limit."""
