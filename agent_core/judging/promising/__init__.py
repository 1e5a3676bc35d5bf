"""How an act is announced: a row for each language, by script."""

from __future__ import annotations

from agent_core.judging.promising.eastern import EASTERN
from agent_core.judging.promising.further import FURTHER
from agent_core.judging.promising.germanic import GERMANIC
from agent_core.judging.promising.language import Language
from agent_core.judging.promising.romance import ROMANCE
from agent_core.judging.promising.slavic import SLAVIC

LANGUAGES: tuple[Language, ...] = (*GERMANIC, *ROMANCE, *SLAVIC, *FURTHER, *EASTERN)
