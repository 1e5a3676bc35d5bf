"""The marks of thoughts, of every family that has some. Pure data, and the rules for what only mentions them.

Servers that know a model put its thoughts into a field of their own. Those that do not pass them on as text, in the model's marks:

- tags: ``<think>`` (DeepSeek R1, Qwen3, GLM, MiniMax, Hunyuan, Nemotron, Step, SmolLM, Magistral's first versions …), ``<thinking>``,
  ``<reasoning>``, ``<thought>`` (EXAONE, Gemini's compatible API), ``<seed:think>`` (Seed-OSS), ``<longcat_think>``, ``<mm:think>``
  (MiniMax M3), ``<reflection>`` (Reflection), ``<scratchpad>`` (Hermes), in any case, with or without attributes;
- marks: ``[THINK]`` (Magistral), ``◁think▷`` (Kimi-VL), ``<|START_THINKING|>`` (Command A), ``<|begin_of_thought|>`` (Sky-T1),
  ``<|inner_prefix|>`` (Apertus), ``<|channel>thought`` (Gemma 4), ``<|open|>think<|sep|>`` (Kimi K3), ``[unused16]`` (Pangu);
- channels: ``<|channel|>analysis<|message|>`` (gpt-oss), see the family `harmony`; and ``analysis…assistantfinal``, which is left of
  them when a server drops the special tokens; and Granite 3.2's plain words.

Sources: the reasoning parsers of vLLM (vllm/reasoning) and SGLang (parser/reasoning_parser.py), the chat templates of the models.
"""

from __future__ import annotations

import re

from agent_core.model.families.family import Ends

TAGS = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "seed:think",
    "mm:think",
    "longcat_think",
    "antml:thinking",
    "antthinking",
    "inner_monologue",
)
PAIRS = (
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("[unused16]", "[unused17]"),
)
TAG_OPENS = tuple(f"<{name}" for name in TAGS)
"""Only the beginnings: white space, attributes or ``>`` follow."""
TAG_CLOSES = tuple(form for name in TAGS for form in (f"</{name}>", f"</ {name}>", f"</{name} >"))
TAG_ENDS = Ends(TAG_CLOSES, tuple(f"<{name}>" for name in TAGS), folded=True)
"""Whatever tag of these opened a thought, any of them closes it: models mix them up."""
PAIR_ENDS = {opening: Ends((closing,), (opening,)) for opening, closing in PAIRS}
PAIR_CLOSES = {closing: PAIR_ENDS[opening] for opening, closing in PAIRS}
STRIPPED_HARMONY = "analysis"
"""Directly followed by a capital letter at the beginning of a reply: gpt-oss without its special tokens."""
STRIPPED_COMMENTARY = "assistantcommentary"
STRIPPED_FINAL = "assistantfinal"
STRIPPED_ENDS = Ends((STRIPPED_FINAL, STRIPPED_COMMENTARY), must_end=True)
FRAMES = ("<answer>", "</answer>", "<response>", "</response>")
"""Tags around the reply behind a thought (Hunyuan A13B, ERNIE 4.5)."""
GRANITE = ("Here is my thought process:", "Here's my thought process:")
GRANITE_ENDS = Ends(("Here is my response:", "Here's my response:"), must_end=True)
ATTRIBUTES = re.compile(
    r"""(?:\s{1,8}[\w:-]{1,40}\s{0,4}=\s{0,4}(?:"[^"<>]{0,200}"|'[^'<>]{0,200}'|[^\s"'<>]{1,200})){0,8}\s{0,8}/?"""
)
"""What may stand in a tag behind its name."""
_JOINING = re.compile(r"[^\w\n]{0,6}\w{0,5}[^\w\n]{0,6}")
_ENDS_SENTENCE = frozenset(".!?:;…。！？)]}*_>\"'”»")


def may_mention(before: str, after: str) -> bool:
    """Whether a tag in a sentence may be a word of it: the sentence has begun (`before`), and goes on behind it as after a word."""
    word_before = before.endswith((" ", "\t", "(", ",")) and before.strip()[-1:] not in _ENDS_SENTENCE
    return bool(word_before and before.strip()) and after[:1] in (
        " ",
        ",",
        ".",
        ";",
        ":",
        "!",
        "?",
        ")",
        "'",
        "’",
        "/",
        "",
    )


def only_joins(between: str) -> bool:
    """Whether what stands between two tags only joins two words ("and", "…"), so that both are mentioned."""
    return bool(_JOINING.fullmatch(between))


def close_is_word(before: str, after: str) -> bool:
    """Whether an end tag without a beginning is a word of a sentence."""
    if not may_mention(before, after):
        return False
    return after[:1] != " " or after[1:2].islower()
