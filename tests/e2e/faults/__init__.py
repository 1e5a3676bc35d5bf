"""What providers, servers and proxies are documented or reported to do, as tables; `playing` plays them through the whole gateway."""
