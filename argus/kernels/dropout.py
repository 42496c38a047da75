"""Dropout with the random bits of torch on a GPU, for bf16, f16 and f32."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from typing import Any

from attrs import frozen

from argus.kernels.config_names import name_of
from argus.language import (
    DType,
    Int,
    Template,
    Tensor,
    assert_equals,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    elements,
    f16,
    f32,
    gfx942,
    i32,
    kernel,
    load,
    philox,
    registers,
    replicated,
    scalar,
    sm_90a,
    spread,
    vmem,
    where,
)

WORDS = 4
"""Random words of a counter."""
_WIDEST = 16
"""Bytes that a thread of torch's loads at once, at most."""


@frozen
class Drawn:
    """vector: elements that a thread of torch's loads at once, 8, 4, 2 or 1.

    It draws four words for each four of them, or for 2; of 1, four elements that lie apart have the words.
    """

    vector: int = 4
    threads: int = 256
    target = sm_90a

    @property
    def tile(self) -> int:
        """Elements of a block."""
        return self.threads * max(self.vector, WORDS)


@frozen
class DrawnCdna3(Drawn):
    target = gfx942


def choose(elements: int, size: int) -> str:
    """The configuration on Hopper for so many elements of so many bytes each."""
    return name_of(Drawn(_vector(elements, size)))


def choose_cdna3(elements: int, size: int) -> str:
    """The same on MI300X."""
    return name_of(DrawnCdna3(_vector(elements, size)))


def _vector(elements: int, size: int) -> int:
    """The most that torch's kernel loads at once, which leaves no rest."""
    return next(each for each in _vectors(size) if elements % each == 0)


def _vectors(size: int) -> tuple[int, ...]:
    return tuple(each for each in (8, 4, 2, 1) if each * size <= _WIDEST)


def _configs(dtype: DType) -> dict[str, Drawn]:
    kinds = [kind(vector) for kind in (Drawn, DrawnCdna3) for vector in _vectors(dtype.bits // 8)]
    return {name_of(each): each for each in kinds}


def _counter(n: Int, threads: Int, vector: int) -> tuple[Int, Int, Int]:
    """The step, the thread and the word of an element's random bits."""
    if vector > 1:
        draws = max(vector // WORDS, 1)
        return n // vector // threads * draws + n % vector // WORDS, n // vector % threads, n % vector % WORDS
    return n // threads // WORDS, n % threads, n // threads % WORDS


def dropout(dtype: DType) -> Template:
    """Y[n] = X[n] * F[0] where the element's random word is at most S[3], else 0.

    S: the halves of the seed, the first counter, and the greatest word that keeps an element, less 2^31. T: threads, of
    which each has a counter of its own.
    """

    @kernel(configs=_configs(dtype), name=f"dropout_{dtype}")
    def made(
        X: Tensor["N", dtype], S: Tensor["4", i32], F: Tensor["1", f32], Y: Tensor["N", dtype], *, T: Int, cfg: Drawn
    ) -> None:
        (N,) = X.shape
        assume(N % cfg.vector == 0)
        assume(T >= 1)
        by = spread((cfg.tile,), threads=cfg.threads, vector=cfg.vector)
        (block,) = block_id((ceil_div(N, cfg.tile),))
        held = load(X.tile((cfg.tile,), (block,)), by, edge=0)
        low, high, first, last = (load(S[i], replicated(cfg.threads)) for i in range(4))
        factor = load(F[0], replicated(cfg.threads))
        if cfg.target == gfx942:
            vmem.wait(0)
        x = held.to(f32)
        start = registers(i32, by)
        start[:] = first
        (e,) = x.index
        bits = philox(start, *_counter(block * cfg.tile + e, T, cfg.vector), low, high)
        copy(where(bits <= last, x * factor, 0.0).to(dtype), Y.tile((cfg.tile,), (block,)), edge=0)

        def kept(n: Int) -> Any:  # noqa: ANN401 reason: a formula
            first_counter: Any = scalar(S[2])
            word = philox(first_counter, *_counter(n, T, cfg.vector), scalar(S[0]), scalar(S[1]))
            return where(word <= scalar(S[3]), elements(X)(n) * elements(F)(0), 0)

        assert_equals(Y, kept)

    return made


FAMILIES = {str(dtype): dropout(dtype) for dtype in (bf16, f16, f32)}
"""By the type's name."""
