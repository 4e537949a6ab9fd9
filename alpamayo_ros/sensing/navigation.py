"""The navigation instruction in force: short, printable, and forgotten when nobody renews it."""

from __future__ import annotations


def clean(text: str, max_length: int) -> str:
    """One printable line of at most max_length characters; control characters become spaces."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:max_length].rstrip()


class Navigation:
    """The last navigation text, until it expires."""

    def __init__(self) -> None:
        self._text = ""
        self._since_ns = 0

    def set(self, text: str, now_ns: int, max_length: int) -> None:
        """Take a new text; an empty one clears it."""
        self._text = clean(text, max_length)
        self._since_ns = now_ns

    def current(self, now_ns: int, timeout_ns: int) -> str:
        """The text in force at now_ns, or "" """
        if 0 <= now_ns - self._since_ns <= timeout_ns:
            return self._text
        return ""
