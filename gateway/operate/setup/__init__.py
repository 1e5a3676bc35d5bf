"""``outspoken setup``: asks, tries, and only then writes."""
