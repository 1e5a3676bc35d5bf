"""Skills: folders of instructions for kinds of tasks, in the published format, which the agent reads when it needs them."""
