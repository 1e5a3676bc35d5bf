"""Tools of other programs, by the Model Context Protocol: servers that the operator configures, each looked after by one task."""
