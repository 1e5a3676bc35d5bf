"""Keys of the API, as they are kept: never as they are shown."""
