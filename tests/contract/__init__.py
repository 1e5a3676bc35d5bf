"""The API against its own document: schemathesis makes requests out of it, and looks whether what comes back is what it says."""
