"""Chat platforms, end to end: the real gateway, the real libraries, servers of ours that speak the platforms."""
