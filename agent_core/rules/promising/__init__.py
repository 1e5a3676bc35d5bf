"""How an act is announced: a row for each language, by script."""

from __future__ import annotations

from agent_core.rules.promising.eastern import EASTERN
from agent_core.rules.promising.further import FURTHER
from agent_core.rules.promising.germanic import GERMANIC
from agent_core.rules.promising.language import Language
from agent_core.rules.promising.romance import ROMANCE
from agent_core.rules.promising.slavic import SLAVIC

LANGUAGES: tuple[Language, ...] = (*GERMANIC, *ROMANCE, *SLAVIC, *FURTHER, *EASTERN)
