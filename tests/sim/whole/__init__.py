"""The whole daemon in the simulation: its composition is `gateway.daemon.serving`, with hub, chats, intake, outbox, scheduler and keeper; only
the port of HTTP, the network to the model and the platform's own library are simulated."""
