"""Mistakes that nobody has chosen: made by rule of the modules that decide, and looked for by their tests."""
