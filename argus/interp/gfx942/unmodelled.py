"""E502: what the interpreter has no semantics for."""

from __future__ import annotations

from argus.core.diagnostic import ArgusError, Diagnostic


def not_modelled(what: str, first: int, second: int, address: int) -> ArgusError:
    """E502 with the instruction's words and address; words of 0 are left out."""
    words = (("words", f"{first:08x} {second:08x}"),) if first else ()
    return ArgusError(
        Diagnostic(
            "E502",
            "error",
            f"an instruction of the machine code is not modelled: {what}",
            facts=(("address", f"0x{address:x}"), *words),
            help="the interpreter never guesses: report the instruction, with the kernel that contains it",
        )
    )
