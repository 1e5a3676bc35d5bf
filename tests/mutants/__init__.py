"""Mistakes that nobody has chosen: made by rule of the product, and looked for by their tests."""
