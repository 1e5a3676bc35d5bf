"""Searching the web by an engine that the operator has configured. This much the configuration knows of it."""

from __future__ import annotations

from enum import StrEnum

SEARCH_WEB = "search_web"
"""The tool."""
MOST = 20
"""Results; engines give no more at once."""


class Engine(StrEnum):
    """Who is asked."""

    SEARXNG = "searxng"
    BRAVE = "brave"
    TAVILY = "tavily"

    @property
    def called(self) -> str:
        """As it calls itself."""
        return {"searxng": "SearXNG", "brave": "Brave", "tavily": "Tavily"}[self.value]

    @property
    def address(self) -> str:
        """Where it is, if the operator says nothing else; SearXNG, which everybody runs themselves, listens there as it comes."""
        return {
            "searxng": "http://127.0.0.1:8888",
            "brave": "https://api.search.brave.com",
            "tavily": "https://api.tavily.com",
        }[self.value]
