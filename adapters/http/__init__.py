"""The surfaces over HTTP: the OpenAI-compatible API and the web page."""
