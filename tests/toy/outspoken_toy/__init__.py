"""The toy platform for outspoken: what docs/adapters.md walks through."""
