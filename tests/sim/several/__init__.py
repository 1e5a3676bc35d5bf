"""Several gateways at once in the simulation, each a process with a loop, a store and a clock of its own, on one simulated server."""
