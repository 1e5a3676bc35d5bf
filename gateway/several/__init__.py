"""Several gateways as one, on one PostgreSQL database: who works on what, and how the others hear of it."""
