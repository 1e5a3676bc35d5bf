"""Tools that read public pages, and which addresses they may call."""
