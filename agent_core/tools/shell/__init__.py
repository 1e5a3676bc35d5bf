"""Commands that the model runs, each in a sandbox: the tools, what is written down of a command, and the process that watches over it."""
