"""Writes the file of a technique in the form that `argus.policy.knowledge` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs

from argus.policy.technique import Effect, Lineage, Technique

_APART = {"effect", "lineage", "text", "conjecture"}
"""Fields that are not written like the others."""


def technique_text(technique: Technique) -> str:
    """The file's text in normal form: `parse` returns an equal technique, whose text is the same again."""
    plain = [each.name for each in attrs.fields(Technique) if each.name not in _APART]
    lines = [f"{name} = {_value(getattr(technique, name))}" for name in plain]
    lines.insert(plain.index("risk"), f"effect = {_effect(technique.effect)}")
    lines += ["conjecture = true"] if technique.conjecture else []
    lines += [] if technique.lineage else ["lineage = []"]
    for row in technique.lineage:
        lines += ["", "[[lineage]]", *_row(row)]
    return "\n".join(["+++", *lines, "+++", technique.text, ""])


def _value(value: str | tuple[str, ...] | float) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value) if isinstance(value, str) else _number(value)


def _quoted(text: str) -> str:
    """A basic TOML string; its escapes are JSON's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    """Four significant digits, always with a decimal point."""
    shown = f"{value:.4g}"
    return shown if "." in shown or "e" in shown else f"{shown}.0"


def _effect(effect: Effect) -> str:
    numbers = ", ".join(f"{name} = {_number(getattr(effect, name))}" for name in ("low", "likely", "high"))
    return f"{{ {numbers}, basis = {_quoted(effect.basis)} }}"


def _row(row: Lineage) -> Iterator[str]:
    for each in attrs.fields(Lineage):
        yield f"{each.name} = {_value(getattr(row, each.name))}"
