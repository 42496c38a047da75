"""Kernels under other names: every tensor, symbol and barrier renamed, to what would be dangerous in C."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Any, cast

import attrs
from attrs import define, evolve, field

from argus.core import algebra
from argus.core.index import Held, Node, Read, Sym, Symbol
from argus.core.ir import Buffer, Kernel
from argus.core.walk import fold, rebuild
from argus.emit.cuda.prelude import PRELUDE as CUDA
from argus.emit.hip.prelude import PRELUDE as HIP
from argus.emit.names import Names, assign_names

_KEYWORDS = """
    alignas and asm auto bool break case char class const continue default delete do double else enum extern false float
    for goto if inline int long namespace new not nullptr operator or register return short signed sizeof static struct
    switch template this throw true try typedef typename union unsigned using virtual void volatile while xor
"""
_DANGEROUS = """
    linux unix NULL INFINITY assert threadIdx blockIdx gridDim warpSize printf memcpy __syncthreads __CUDA_ARCH__ dim3
    memory base keep kk mm nn value at at0 at0_1 at1 base0 quotient0 wave i A A_ A__ _A a_ a__ A_2 A_2_ A_buffer
    A__buffer A_map0 A__map0 guard0 _ __ thread thread_ tile_of own_tile Ab aB AB ab gemm gemm_ gemm__guard0
"""
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NUMBERED = re.compile(r"integer\d+")
_WORDS = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")


def dangerous_names() -> tuple[str, ...]:
    """Keywords, names of the preludes, predefined macros, single letters, and names that differ in `_` or case only."""
    preludes = re.findall(r"\b[A-Za-z_]\w*", CUDA + HIP)
    return tuple(dict.fromkeys([*_KEYWORDS.split(), *_DANGEROUS.split(), *_LETTERS, *preludes]))


@define
class _Renaming:
    symbols: Mapping[Symbol, Symbol]
    buffers: Mapping[str, str]
    done: dict[int, Any] = field(factory=dict[int, Any])

    def of(self, part: Any) -> Any:  # noqa: ANN401 reason: any part of the IR
        if isinstance(part, Symbol):
            return self.symbols.get(part, part)
        if isinstance(part, Node):
            return fold(part, self._node)
        if isinstance(part, tuple):
            return tuple(map(self.of, cast("tuple[Any, ...]", part)))
        if not type(part).__module__.startswith("argus.core.ir"):
            return part
        if id(part) not in self.done:
            self.done[id(part)] = self._object(part)
        return self.done[id(part)]

    def _object(self, part: Any) -> Any:  # noqa: ANN401 reason: as above
        changed = {each.name: self.of(getattr(part, each.name)) for each in attrs.fields(cast("type[Any]", type(part)))}
        if isinstance(part, Buffer):
            changed["name"] = self.buffers[part.name]
        return evolve(part, **{name: value for name, value in changed.items() if value is not getattr(part, name)})

    def _node(self, node: Node, parts: Sequence[Node]) -> Node:
        match node:
            case Sym(symbol=symbol):
                return algebra.sym(self.of(symbol))
            case Read(array=array):
                return algebra.read(self.buffers[array], cast("Any", parts))
            case Held(fragment=fragment):
                return algebra.held(self.buffers.get(fragment, fragment), cast("Any", parts))
            case _:
                return rebuild(node, parts)


def renamed(kernel: Kernel, seed: str) -> Kernel:
    """The kernel with every tensor, barrier, counter, register tile and symbol under a random name, each once."""
    draw = Random(seed)  # noqa: S311 reason: names for a test
    names = assign_names(kernel)
    symbols, buffers = list(names.symbols), list(dict.fromkeys(buffer.name for buffer in names.buffers))
    pool = draw.sample(dangerous_names(), len(symbols) + len(buffers) + 1)
    symbol_names = {old: evolve(old, name=pool.pop()) for old in symbols}
    renaming = _Renaming(symbol_names, {old: pool.pop() for old in buffers})
    return evolve(renaming.of(kernel), name=pool.pop())


def identifiers(names: Names) -> tuple[str, ...]:
    """The identifiers of a kernel in the order in which they are assigned, the same for a renamed kernel."""
    return (names.kernel, *names.symbols.values(), *names.buffers.values())


def structure(text: str, original: Mapping[str, str]) -> list[list[str]]:
    """The words of each line without comments, in sorted order, since names decide the order of the terms of a sum.

    original: an identifier by which to replace each; the part ahead of `__` in a derived name is replaced too.
    """
    lines = [list(_words(line, original)) for line in re.sub(r"//[^\n]*", "", text).splitlines()]
    return [words for group in _in_groups([sorted(words) for words in lines if words]) for words in group]


def _in_groups(lines: Sequence[list[str]]) -> Iterator[list[list[str]]]:
    """Definitions of integers that follow each other are numbered in the order of terms: sorted, without numbers."""
    for defines, group in groupby(lines, key=lambda words: any(map(_NUMBERED.fullmatch, words)) and "const" in words):
        unnumbered = [_unnumbered(words) for words in group]
        yield sorted(unnumbered) if defines else unnumbered


def _unnumbered(words: list[str]) -> list[str]:
    return sorted(_NUMBERED.sub("integer", word) for word in words)


def _words(line: str, original: Mapping[str, str]) -> Iterator[str]:
    for word in _WORDS.findall(line):
        head, middle, tail = word.partition("__")
        derived = f"{head}_" in original and middle and tail
        yield f"{original[f'{head}_']}_{tail}" if derived else original.get(word, word)
