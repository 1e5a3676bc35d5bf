"""Whether the store can be written and read, watched while the gateway runs and looked at before it starts."""
