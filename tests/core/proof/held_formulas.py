"""What corpus kernels compute, as formulas over the coordinates of their outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from attrs import frozen

from argus.core.algebra import sym
from argus.core.index import Index
from argus.core.ir import Kernel
from argus.core.values.expr import Element, Expr, element, fn
from tests.core.values.formulas import greatest, total

Size = Callable[[str], Index]
Formula = Callable[[Size, Sequence[Index]], Expr]


@frozen
class Expected:
    """The formula of one output of a kernel of `tests/corpus/proved`."""

    kernel: str
    output: str
    formula: Formula


def sizes(kernel: Kernel) -> Size:
    """The sizes of a kernel by name."""
    known = {each.name: each for each in kernel.sizes}
    return lambda name: sym(known[name])


def product(size: Size, at: Sequence[Index]) -> Expr:
    """A b^T."""
    m, n = at
    return total(0, size("K"), lambda k: element("A", m, k) * element("B", n, k))


def batched(size: Size, at: Sequence[Index]) -> Expr:
    z, m, n = at
    return total(0, size("K"), lambda k: element("A", z, m, k) * element("B", z, n, k))


def less_mean(size: Size, at: Sequence[Index]) -> Expr:
    r, n = at
    return element("X", r, n) - total(0, size("N"), lambda j: element("X", r, j)) / size("N")


def layer_norm(size: Size, at: Sequence[Index]) -> Expr:
    r, n = at
    mean = total(0, size("N"), lambda j: element("X", r, j)) / size("N")
    off = element("X", r, n) - mean
    variance = total(0, size("N"), lambda j: (element("X", r, j) - mean) * (element("X", r, j) - mean)) / size("N")
    return off * fn("rsqrt", variance + Fraction(1e-5)) * element("G", n) + element("B", n)


def _attention(size: Size, s: Index, value: Callable[[Index], Element]) -> Expr:
    """Softmax of scores in base 2, scaled by a quarter, times values; relative to the greatest, as nobody needs to."""

    def score(t: Index) -> Expr:
        return total(0, 16, lambda d: element("Q", s, d) * element("K", t, d)) * Fraction(1, 4)

    top = greatest(0, size("T"), score)

    def weight(t: Index) -> Expr:
        return fn("exp2", score(t) - top)

    return total(0, size("T"), lambda t: weight(t) * value(t)) / total(0, size("T"), weight)


def attention(size: Size, at: Sequence[Index]) -> Expr:
    s, e = at
    return _attention(size, s, lambda t: element("V", e, t))


def attention_of_rows(size: Size, at: Sequence[Index]) -> Expr:
    s, e = at
    return _attention(size, s, lambda t: element("V", t, e))


def relu(size: Size, at: Sequence[Index]) -> Expr:
    return fn("max", product(size, at), 0)


def half(size: Size, at: Sequence[Index]) -> Expr:
    return product(size, at) * Fraction(1, 2)


PRODUCTS = (
    "barriers_by_hand", "blocks_apart", "buffer_by_branch", "cluster_by_hand", "cluster_meets_at_the_end",
    "cluster_shares_b", "cp_async_prologue_of_two_groups", "cp_async_two_groups_ahead", "direct_from_global",
    "double_buffer", "groups_fetch_apart", "mfma_16x16x16", "no_prefetch", "one_slot", "operands_in_two_rings",
    "peeled_first", "pingpong",
    "prefetch_after_store", "real_triton_6220", "single_buffer", "sliced_k", "split_k_in_a_cluster", "split_k_turned",
    "staged_output", "stored_in_the_last_step",
    "summed_in_order", "swapped_grid", "three_buffers", "tile_96_by_48", "tile_in_two_loops", "two_consumers",
    "whole_tiles", "zeroed_sum",
)  # fmt: skip

EXPECTED = (
    *(Expected(name, "C", product) for name in PRODUCTS),
    Expected("batched", "C", batched),
    Expected("relu_output", "C", relu),
    Expected("scaled_output", "C", half),
    Expected("rows_less_their_mean", "Y", less_mean),
    Expected("layer_norm_merged", "Y", layer_norm),
    Expected("layer_norm_in_two_passes", "Y", layer_norm),
    Expected("attention_of_one_wave", "O", attention),
    Expected("attention_from_two_rings", "O", attention_of_rows),
)
FORMULAS: Mapping[str, Expected] = {each.kernel: each for each in EXPECTED}
