"""Text out of files that people send: PDF, Office and text files, read in a worker process."""
