"""A link as a person sees it, in words for the model."""

from __future__ import annotations


def is_bare(label: str, url: str) -> bool:
    """Whether the label says no more than the address."""
    return not label or url.removeprefix("mailto:").rstrip("/") in (label, f"http://{label}", f"https://{label}")


def labelled(label: str, url: str) -> str:
    """A link in Markdown; only its address where the label says no more, and a mail's without `mailto:`."""
    if url.startswith("mailto:") and is_bare(label, url):
        return url.removeprefix("mailto:")
    return url if is_bare(label, url) else f"[{label}]({url})"
