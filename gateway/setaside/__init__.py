"""What cannot be gone on with is set aside, told, and tried again when that makes sense."""
