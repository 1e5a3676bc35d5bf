"""The durable store: tables, the one writer, named transactions, and who owns what."""
