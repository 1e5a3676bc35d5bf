"""What is kept, and how: backups, checking, packing, and removing what is old or somebody's who is forgotten."""
