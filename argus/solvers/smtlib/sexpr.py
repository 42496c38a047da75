"""Parses and prints S-expressions, the syntax of SMT-LIB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Sexpr = str | list["Sexpr"]
"""A token as written, including bars and quotes, or a list of expressions."""

_TOKEN = re.compile(
    r"""\s+ | ;[^\n]*                      # between tokens
    | (?P<token>[()]                       # lists
    | \|[^|\\]*\|                          # quoted symbols
    | "(?:[^"]|"")*"                       # strings
    | [^\s()|";]+)                         # numerals, symbols, keywords
    """,
    re.VERBOSE,
)


class SyntaxFault(ValueError):  # noqa: N818 reason: not to be confused with Python's SyntaxError
    """The text is not a sequence of S-expressions; the message says why and where."""


def parse(text: str) -> list[Sexpr]:
    """The expressions of a text. Raises SyntaxFault."""
    found: list[Sexpr] = []
    open_lists: list[list[Sexpr]] = []
    for line, piece in _tokens(text):
        into = open_lists[-1] if open_lists else found
        if piece == "(":
            fresh: list[Sexpr] = []
            into.append(fresh)
            open_lists.append(fresh)
        elif piece != ")":
            into.append(piece)
        elif open_lists:
            open_lists.pop()
        else:
            raise SyntaxFault(f"line {line}: unmatched closing parenthesis")
    if open_lists:
        raise SyntaxFault("the text ends inside a parenthesis")
    return found


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SyntaxFault(f"line {line}: expected a token, found {text[at : at + 20]!r}")
        token = match["token"]
        if token is not None:
            yield line, token
        line += match[0].count("\n")
        at = match.end()


def unparse(expression: Sexpr) -> str:
    """The text of an expression, with single spaces between tokens."""
    pieces: list[str] = []
    stack: list[Sexpr] = [expression]
    while stack:
        each = stack.pop()
        if each != ")" and pieces and pieces[-1] != "(":
            pieces.append(" ")
        if isinstance(each, str):
            pieces.append(each)
            continue
        stack.extend((")", *reversed(each)))
        pieces.append("(")
    return "".join(pieces)


def unquoted(token: str) -> str:
    """The symbol that a token names, without the bars of a quoted one."""
    return token[1:-1] if token.startswith("|") else token


def commands(expressions: Sequence[Sexpr]) -> Iterator[tuple[str, list[Sexpr]]]:
    """Each command's name and arguments. Raises SyntaxFault for an expression that is not a command."""
    for each in expressions:
        if isinstance(each, str) or not each or not isinstance(each[0], str):
            raise SyntaxFault(f"expected a command such as (assert ...), found {unparse(each)[:40]}")
        yield each[0], each[1:]
