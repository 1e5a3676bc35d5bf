"""What the model writes, as the page shows it: read here, sent as it grows, made to elements there."""
