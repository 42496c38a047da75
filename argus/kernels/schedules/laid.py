"""What the launches that lay out a convolution's operands need of its configuration."""

from __future__ import annotations

from typing import Protocol


class Laid(Protocol):
    """run: channels that a thread lays out at once, 8 or 16. blocks: of a launch. laid: threads along the last axis."""

    @property
    def run(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def laid(self) -> int: ...
