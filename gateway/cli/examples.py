"""An example or two for the help of every command; apart, as data that nothing else needs. A test looks that none is missing, and that each is of its command."""

from __future__ import annotations

from collections.abc import Mapping

import click

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": ("outspoken run", 'outspoken ask "what is in notes.txt?"', "outspoken --config ./outspoken.toml doctor"),
    "run": (
        "outspoken run",
        "OPENAI_BASE_URL=http://127.0.0.1:11434/v1 outspoken run",
        "OUTSPOKEN_SERVER__PORT=8788 outspoken run",
    ),
    "chat": ("outspoken chat", "outspoken chat --session work"),
    "ask": ('outspoken ask "what is in notes.txt?"', "outspoken ask - < question.txt", 'outspoken ask --json "hello"'),
    "status": ("outspoken status", "outspoken status --json"),
    "replay": (
        "outspoken replay t-0198c0de",
        "outspoken replay t-0198c0de --set model.stall_seconds=20",
        "outspoken replay --file outspoken-t-0198c0de.tar.gz",
    ),
    "send": (
        'outspoken send --to telegram/12345678 "The backup is done."',
        "outspoken send --to slack/C0123456789 --file report.pdf --wait",
    ),
    "triage": ("outspoken triage", "outspoken triage --since 2h", "outspoken triage /var/log/outspoken.log*"),
    "access": ("outspoken access list", "outspoken access approve K7RT2MXD"),
    "access list": ("outspoken access list",),
    "access approve": ("outspoken access approve K7RT2MXD", "outspoken access approve 12345678"),
    "access forget": ("outspoken access forget telegram/4711/12345678",),
    "access revoke": ("outspoken access revoke 12345678",),
    "people": ("outspoken people list", "outspoken people forget telegram/4711/12345678"),
    "people list": ("outspoken people list",),
    "people approve": ("outspoken people approve K7RT-2MXD",),
    "people forget": ("outspoken people forget telegram/4711/12345678", "outspoken people forget api/ada --yes"),
    "people revoke": ("outspoken people revoke 12345678",),
    "config": ("outspoken config template > outspoken.toml", "outspoken config check"),
    "config show": ("outspoken config show",),
    "config check": ("outspoken config check", "outspoken --config ./outspoken.toml config check"),
    "config template": ("outspoken config template > outspoken.toml",),
    "setup": ("outspoken setup", "outspoken setup discord"),
    "doctor": ("outspoken doctor", "outspoken doctor --json"),
    "audit": ("outspoken audit", "outspoken audit --late 60 --json"),
    "db": ("outspoken db check", "outspoken db backup /backups/outspoken-monday.db"),
    "db check": ("outspoken db check", "outspoken db check --quick"),
    "db backup": ("outspoken db backup /backups/outspoken-monday.db",),
    "db restore": ("outspoken db restore /backups/outspoken-monday.db",),
    "approvals": ("outspoken approvals list", "outspoken approvals approve 3f9c2a1b7d04"),
    "approvals list": ("outspoken approvals list", "outspoken approvals list --json"),
    "approvals show": ("outspoken approvals show 3f9c2a1b7d04",),
    "approvals approve": (
        "outspoken approvals approve 3f9c2a1b7d04",
        "outspoken approvals approve 3f9c2a1b7d04 --for conversation",
    ),
    "approvals deny": ("outspoken approvals deny 3f9c2a1b7d04",),
    "keys": ("outspoken keys add laptop --owner ada", "outspoken keys list"),
    "keys add": (
        "outspoken keys add laptop --owner ada",
        "outspoken keys add open-webui --owner family --names-users --per-minute 60",
        "outspoken keys add ci --models gpt-5-mini --no-tools --day-tokens 200000 --errors status",
    ),
    "keys list": ("outspoken keys list", "outspoken keys list --json"),
    "keys show": ("outspoken keys show laptop",),
    "keys change": ("outspoken keys change ci --day-tokens 500000", "outspoken keys change ci --all-tools"),
    "keys rotate": ("outspoken keys rotate laptop", "outspoken keys rotate open-webui --keep-minutes 60"),
    "keys revoke": ("outspoken keys revoke laptop",),
    "explain": ("outspoken explain t-0198c0de", "outspoken explain --chat telegram/12345678 --at 14:05"),
    "bundle": ("outspoken bundle t-0198c0de", "outspoken bundle t-0198c0de --output case.tar.gz"),
    "health": ("outspoken health", "outspoken health ready", "outspoken health well --timeout 2"),
    "mcp": ("outspoken mcp list",),
    "mcp list": ("outspoken mcp list", "outspoken mcp list --json"),
    "mcp login": ("outspoken mcp login tickets", "outspoken mcp login tickets --port 8899"),
    "mcp serve": ("outspoken mcp serve", "OUTSPOKEN_KEY=osk-… outspoken mcp serve --url https://chat.example.org"),
    "mcp try": ('outspoken mcp try time get_current_time \'{"timezone": "Asia/Tokyo"}\'',),
    "tools": ("outspoken tools list",),
    "tools list": ("outspoken tools list", "outspoken tools list --json"),
    "tools try": ('outspoken tools try temperature \'{"city": "Rome"}\'',),
    "webhooks": ("outspoken webhooks list", "outspoken webhooks test deploy"),
    "webhooks list": ("outspoken webhooks list", "outspoken webhooks list --json"),
    "webhooks test": ("outspoken webhooks test deploy",),
    "webhooks resend": ("outspoken webhooks resend deploy",),
    "webhooks on": ("outspoken webhooks on deploy",),
    "completion": (
        "outspoken completion bash > ~/.local/share/bash-completion/completions/outspoken",
        "outspoken completion zsh > ~/.zfunc/_outspoken",
        "outspoken completion fish > ~/.config/fish/completions/outspoken.fish",
    ),
}
"""By the command's words."""


def with_examples(command: click.Command, words: str = "") -> None:
    """Put its examples at the end of the help of a command, and of those below it."""
    examples = EXAMPLES.get(words, ())
    if examples:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            with_examples(inner, f"{words} {name}".strip())
