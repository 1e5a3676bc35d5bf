"""The section ``[search]``: the engine that the agent searches the web with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from adapters.contract.settings import FromOutside, Secret, Section, Unit, Url, Usual, complaint
from agent_core.tools.search import MOST, Engine

if TYPE_CHECKING:
    from agent_core.tools.search.tool import SearchTerms


class Search(Section):
    """Searching the web; see docs/search.md."""

    engine: Engine | None = Field(default=None, examples=["searxng"])
    """Whom to ask: searxng, brave or tavily. Not set: the agent has no tool to search with."""
    url: Annotated[Url, Usual(("SEARXNG_URL",))] = Field(default="", examples=["http://127.0.0.1:8888"])
    """Address of the engine. Empty: where Brave and Tavily are, and http://127.0.0.1:8888 for SearXNG, which everybody runs themselves."""
    api_key: Annotated[Secret | None, Usual(("BRAVE_API_KEY", "TAVILY_API_KEY")), FromOutside("api_key_file")] = None
    """The key of the engine; searxng needs none."""
    api_key_file: Path | None = Field(default=None, examples=["search.key"])
    """File that holds the key and nothing else."""
    results: Annotated[int, Unit("results")] = Field(default=8, ge=1, le=MOST)
    """So many results are given to the model, unless it asks for another number."""

    @model_validator(mode="after")
    def _usable(self) -> Search:
        if self.engine is not None and self.engine is not Engine.SEARXNG and self.api_key is None:
            fix = "Put it into the environment (OUTSPOKEN_SEARCH__API_KEY), or name a file that holds it: api_key_file."
            raise complaint("api_key", f"{self.engine.called} wants a key, and there is none", fix)
        return self

    def terms(self) -> SearchTerms | None:
        """Whom to ask, if anybody."""
        if self.engine is None:
            return None
        from agent_core.tools.search.tool import SearchTerms

        key = self.api_key.get_secret_value() if self.api_key is not None else ""
        return SearchTerms(self.engine, self.url or self.engine.address, key, self.results)
