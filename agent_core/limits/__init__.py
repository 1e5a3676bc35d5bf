"""How much may be used and kept, and for how long."""
