"""Several gateways as one: real processes on one PostgreSQL server, with the stand-ins of the platforms."""
