"""How an act is announced: a row for each language, by script."""
