"""What commands are locked up with: how each sandbox is told to be, how it is begun and ended, and what is counted of it from outside."""
