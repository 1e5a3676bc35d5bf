"""Talking with whoever runs ``outspoken setup``: in a terminal, through a pipe, or not at all (``--yes``)."""

from __future__ import annotations

import sys

import click


class Nobody(Exception):
    """A question has to be answered, and there is nobody to ask."""


class Prompts:
    """Questions and answers. What is typed for a secret is never shown."""

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks
        """False: nothing is asked; what is not given is missing."""

    def say(self, words: str = "") -> None:
        """Tell something."""
        click.echo(words)

    def ask(self, question: str, default: str = "", *, secret: bool = False) -> str:
        """One line; `default` if it is empty. Raises `Nobody` if nothing can be asked."""
        if not self.asks:
            raise Nobody(question)
        hint = f" [{default}]" if default else ""
        line = self._secret(f"{question}{hint}: ") if secret else self._line(f"{question}{hint}: ")
        return line.strip() or default

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        if not self.asks:
            return default
        while True:
            answer = self.ask(f"{question} ({'Y/n' if default else 'y/N'})").lower()
            if not answer:
                return default
            if answer in ("y", "yes", "n", "no"):
                return answer in ("y", "yes")
            self.say("Please answer y or n.")

    def _secret(self, question: str) -> str:
        if not self._terminal():
            return self._line(question)
        import getpass

        try:
            return getpass.getpass(question)
        except EOFError:
            raise Nobody(question) from None

    def _line(self, question: str) -> str:
        click.echo(question, nl=False)
        try:
            line = sys.stdin.readline() if self._open() else ""
        except (OSError, ValueError):
            line = ""
        if not self._terminal():
            click.echo()
        if not line:
            raise Nobody(question)
        return line

    @staticmethod
    def _open() -> bool:
        return sys.stdin is not None and not sys.stdin.closed

    def _terminal(self) -> bool:
        return self._open() and sys.stdin.isatty()
