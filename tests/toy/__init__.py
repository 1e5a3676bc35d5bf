"""A toy platform and its adapter: the example of docs/adapters.md, held to the conformance suite like the real ones."""
