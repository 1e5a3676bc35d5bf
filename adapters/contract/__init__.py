"""What platforms and the gateway say to each other, and the way in that all platforms share."""
