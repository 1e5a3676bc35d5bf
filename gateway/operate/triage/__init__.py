"""``outspoken triage``: failures into groups, the most harmful first."""
