"""Stand-ins for the platforms: real servers on loopback ports that speak a platform's protocol, strictly and by script."""
