"""The daemon: the only place that puts core and adapters together."""
