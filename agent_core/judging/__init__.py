"""What rules say of what happened in a turn: what a reply amounts to, which remedy comes next, whether there is a loop."""
