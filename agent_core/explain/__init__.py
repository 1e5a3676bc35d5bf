"""Why something went as it did, in sentences, from what is stored."""
