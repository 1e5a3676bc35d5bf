"""The API for programs: one request and one answer, in the spelling of whichever endpoint was asked."""
