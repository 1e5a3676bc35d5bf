"""The OpenAPI document of the server, printed from its routes and shapes; loaded when it is first asked for."""
