"""The gateway as a server of tools, for other agents and editors (Model Context Protocol): what is offered, how it is done, and the two ways to it."""
