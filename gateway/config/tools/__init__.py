"""The sections about tools that are not the gateway's own files, notes and pages."""
