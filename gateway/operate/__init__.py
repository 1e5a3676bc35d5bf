"""What whoever runs a gateway does with it from a shell."""
