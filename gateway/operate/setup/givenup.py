"""How a service that is being set up is left."""

from __future__ import annotations


class GivenUp(Exception):
    """Setting a service up was not brought to its end; the words say what that means."""
