"""Text that others wrote: made storable, made visible, and without secrets; and what marks the gateway's own."""
