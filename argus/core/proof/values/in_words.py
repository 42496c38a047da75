"""A value in words: tensors, sums over tag names, and functions, without places and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argus.core.index_text import show
from argus.core.proof.values.named_parts import Tags, known_tags
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Whole
from argus.core.values.rewriting import elements
from argus.core.walk import substitute, symbols

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COLLECTED = {"sum": "sum", "max": "maximum", "min": "minimum", "product": "product"}
_LONG = 300


def in_words(held: Expr, tags: Tags) -> str:
    """What a value is computed from. tags: the names of a tensor's elements, over their coordinates."""
    known: dict[Expr, str] = {}

    def words(of: Expr) -> str:
        if of not in known:
            found = _words(of, words, tags)
            known[of] = found if len(found) <= _LONG else "a longer expression"
        return known[of]

    return _plain(words(held))


def _plain(text: str) -> str:
    """The text without parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text[1:-1] if place == len(text) - 1 else text
    return text


def _words(of: Expr, words: Callable[[Expr], str], tags: Tags) -> str:
    match of:
        case Number(value=value):
            return f"{float(value):g}"
        case Infinity(sign=sign):
            return "inf" if sign > 0 else "-inf"
        case Whole(index=index):
            return show(index)
        case Element(tensor=tensor):
            return tensor
        case Fn(name="add", args=(one, two)) if words(one) == words(two) and words(one).startswith("sum over "):
            return words(one)  # parts of one sum
        case Fn(name=name, args=(one, two)) if name in _SIGNS:
            return f"({_within(words(one))} {_SIGNS[name]} {_within(words(two))})"
        case Fn(name=name, args=(one,)) if name.startswith("to "):
            return words(one)
        case Choose(test=Compare(op=op, left=left, right=right), then=then, other=other):
            test = f"{words(left)} {op} {words(right)}"
            return f"where({test}, {_plain(words(then))}, {_plain(words(other))})"
        case Fn(name=name, args=(one,)):
            return f"{name.removeprefix('wrapped ')}({_plain(words(one))})"
        case Fn(name=name, args=args):
            return f"{name}({', '.join(map(words, args))})"
        case Choose(then=then, other=other):
            cases = [each for each in (then, other) if elements(each)]
            return " or ".join(dict.fromkeys(map(words, cases or (then, other))))
        case Reduce(op=op, variable=variable, body=body):
            names = dict.fromkeys(
                name
                for each in elements(body)
                for name, tag in known_tags(tags, each.tensor)
                if variable in symbols(substitute(tag, {}, each.at))
            )
            return _collected(_COLLECTED[op], list(names), _plain(words(body)))


def _collected(kind: str, names: Sequence[str], body: str) -> str:
    """A sum of sums over parts of one name is one sum."""
    start = f"{kind} over "
    if body.startswith(start):
        inner, rest = body.removeprefix(start).split(" of ", 1)
        return f"{start}{', '.join(dict.fromkeys((*names, *inner.split(', '))))} of {rest}"
    return f"{start}{', '.join(names)} of {body}" if names else body


def _within(text: str) -> str:
    """A sum or an extremum as an operand."""
    return f"({text})" if text.startswith(tuple(f"{kind} over " for kind in _COLLECTED.values())) else text
