"""What is open and nobody works on: found, taken up, gone on with, or set aside."""
