"""The file or server: where it is, who owns it, the one connection that writes, those that read, and what their errors mean."""
