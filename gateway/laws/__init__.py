"""What must be true of everything that is stored, read by somebody who stored none of it."""
