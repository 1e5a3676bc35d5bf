"""The page ``docs/configuration.md``, printed from the configuration's own classes. Pure.

``python -m tests.printed.configuration > docs/configuration.md``; a test compares the two (tests/docs/test_generated.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from gateway.config.keys import OTHER_VARIABLES, KeyDoc, describe, first_sentence, section_words
from gateway.config.sections import schema

_HEAD = """# Configuration

Written by `python -m tests.printed.configuration > docs/configuration.md` from the configuration's own classes; a test compares the two.

All of it has sound defaults: an empty configuration is a working gateway. `outspoken config template` prints this reference as a commented
`outspoken.toml`, `outspoken config check` says what is wrong in yours, and `outspoken config show` prints what is in force, without secrets.

<!-- run -->
```sh
outspoken config template > outspoken.toml
outspoken --config outspoken.toml config check
outspoken config show
```

## Where it is read from

For each key, the first of these that says anything wins:

1. the environment: `OUTSPOKEN_<SECTION>__<KEY>`, then the name that other programs use (such as `OPENAI_API_KEY`);
2. a file `.env` beside the configuration file;
3. systemd's credentials (`CREDENTIALS_DIRECTORY`), for secrets, under the name of the variable;
4. `outspoken.toml`.

The configuration file is looked for at `OUTSPOKEN_CONFIG` (or `--config`), in `OUTSPOKEN_HOME`, in systemd's `CONFIGURATION_DIRECTORY`, in
`$XDG_CONFIG_HOME/outspoken`, and in `~/.config/outspoken`. An empty variable counts as not set, and hides the one of
its name in `.env`. Lists may come as one text with commas between, or as JSON; tables as JSON. Unknown keys and variables are refused, with the nearest name that there is.

**Secrets** never stand in `outspoken.toml`: they come from the environment, or from a file of their own that a key `…_file` names (relative to the
configuration file). No error message, log line or page shows one.

| variable | meaning |
|---|---|"""


def cell(words: str) -> str:
    """Words that cannot break out of a table's cell."""
    return words.replace("|", "\\|").replace("\n", " ")


def code(words: str) -> str:
    return f"`{cell(words)}`" if words else ""


def markdown() -> str:
    """The page docs/configuration.md."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    yield from (f"| {code(name)} | {words} |" for name, words in OTHER_VARIABLES.items())
    yield ""
    for section in schema().model_fields:
        yield f"## [{section}]\n"
        yield f"{_plain(section_words(section))}\n"
        docs = [doc for doc in describe() if doc.section == section]
        yield from _table(docs, with_variables=True)
        for doc in docs:
            if doc.table:
                yield f"### A table of {doc.name}\n\n{_plain(first_sentence(doc.table[0].holder))}\n"
                yield from _table(doc.table, with_variables=False)


def _plain(words: str) -> str:
    return words.replace("``", "`")


def _table(docs: Sequence[KeyDoc], *, with_variables: bool) -> Iterator[str]:
    yield "| key | value | unit | default | meaning |" + (" environment |" if with_variables else "")
    yield "|---|---|---|---|---|" + ("---|" if with_variables else "")
    for doc in docs:
        default = "must be set" if doc.required else "" if doc.secret else code(doc.default)
        meaning = cell(_plain(doc.description))
        if doc.example:
            meaning += f" For example `{cell(doc.example)}`."
        if doc.secret and doc.file_key:
            meaning += f" Never in this file: a variable, or the file that `{doc.file_key}` names."
        row = [code(doc.key), cell(doc.type), doc.unit, default or "–", meaning]
        if with_variables:
            row.append(" ".join(code(name) for name in doc.env))
        yield "| " + " | ".join(row) + " |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(markdown())
