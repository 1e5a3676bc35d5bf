"""The one HTTP server: who comes in, how long a connection may take, and the operators' own routes."""
