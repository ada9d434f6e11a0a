"""What a command said, on any machine."""

from __future__ import annotations


def sentences(stderr: str) -> list[str]:
    """Its lines without those that count the seconds of a slow stage."""
    return [line for line in stderr.splitlines() if not line.endswith(" s")]
