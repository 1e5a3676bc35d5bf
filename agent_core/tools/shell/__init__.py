"""Commands that the model runs, each in a sandbox: the tools, the sandbox, and the process that watches over one command."""
