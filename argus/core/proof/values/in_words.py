"""A value in words: tensors, sums over tag names, and functions, without places and conditions."""

from __future__ import annotations

from collections.abc import Callable

from argus.core.proof.values.named_parts import Tags, known_tags
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Whole
from argus.core.values.rewriting import elements
from argus.core.walk import show, substitute, symbols

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

    return words(held)


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
        case Fn(name=name, args=(one, two)) if name in _SIGNS:
            return f"({words(one)} {_SIGNS[name]} {words(two)})"
        case Fn(name=name, args=args):
            return f"{name}({', '.join(map(words, args))})"
        case Choose(test=test, then=then, other=other):
            cases = [each for each in (then, other) if isinstance(test, Compare) or elements(each)]
            return " or ".join(dict.fromkeys(map(words, cases or (then, other))))
        case Reduce(op=op, variable=variable, body=body):
            names = dict.fromkeys(
                name
                for each in elements(body)
                for name, tag in known_tags(tags, each.tensor)
                if variable in symbols(substitute(tag, {}, each.at))
            )
            over = ", ".join(names)
            return f"{_COLLECTED[op]} over {over} of {words(body)}" if names else words(body)
