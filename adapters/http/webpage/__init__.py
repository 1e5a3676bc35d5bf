"""The files of the web page, served as they are."""
