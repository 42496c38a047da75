"""Products of matrices with work on their sums: kernels and programs whose epilogue is the rest of the nest.

The schedules are those of `argus.kernels`: of f32 products of bf16 parts, or plain FMAs where there is little of it; of
16 bits those of `argus.kernels.gemm`. The claim is the nest's.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all nests.
# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Callable, Mapping
from typing import Any

from argus.kernels.epilogues import multiply_then
from argus.kernels.gemm import Config as Single
from argus.kernels.gemm import multiply
from argus.kernels.gemm_f32 import Adding, Splitting, split_batch, split_matrix, sum_chunks, whole_chunks
from argus.kernels.gemm_fma import Fma, multiply_by_fmas
from argus.kernels.nests.made import program_template, sizes_of, specs_of, template
from argus.kernels.nests.tails import NestTail
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.parts import Parts, sum_products_of_parts
from argus.kernels.schedules.parts_at_once import AtOnce, split_and_multiply
from argus.kernels.schedules.parts_claims import rounded_product
from argus.kernels.schedules.parts_in_ring import InRing, split_in_ring
from argus.kernels.signatures import of_tensors
from argus.language import ProgramTemplate, Template, Tensor, bf16, ceil_div, f32, kernel, workspace
from argus.nests.canonical import Canonical
from argus.nests.nest import Read, Reduce
from argus.nests.products import Product, product_of_matrices
from argus.nests.rewrite import reads, symbols_of

Config = Parts | AtOnce | InRing | Fma | Single
Several = Parts | AtOnce | InRing | Fma
"""Of f32, which may have several launches."""


def product(form: Canonical, config: Config, name: str) -> Template | ProgramTemplate:
    """The kernel, or the program, that computes a nest with one product of matrices."""
    if not isinstance(config, Parts | AtOnce | InRing):
        in_parts = isinstance(config, Fma) and config.chunk
        return program_template(form, launches, config, name) if in_parts else template(form, at_once, config, name)
    products = config.products

    def of_parts(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: values of formulas
        return rounded_product(x, y, products)

    return program_template(form, launches, config, name, of_parts)


def at_once(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Fma | Single) -> None:
    """The sums by one launch, and what becomes of them."""
    of = _product(form)
    A, B, C = (tensors[each] for each in (of.a.name, of.b.name, form.parameters[-1].type.name))
    a, b = _as_rows(of, A, B)
    if isinstance(cfg, Fma):
        multiply_by_fmas(a, b, C, cfg, _tail(form, tensors, sizes, wide=cfg.vector > 1))
        return
    tail = _tail(form, tensors, sizes, wide=isinstance(cfg, Hopper) and not cfg.single)
    problem = Contraction(a, b, C, tagged=False)  # the nest's formula claims all, and its other operands have no tags
    if tail is None:
        multiply(problem, cfg)
    else:
        assert isinstance(cfg, Hopper)
        multiply_then(problem, cfg, tail)


def launches(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Several) -> None:
    """The sums by several launches, of which the one that stores them computes what becomes of them."""
    del sizes
    of, specs = _product(form), specs_of(form)
    given = {of.a.name: specs[of.a.name], of.b.name: specs[of.b.name]}
    a, b, C = (tensors[each] for each in (of.a.name, of.b.name, form.parameters[-1].type.name))
    if isinstance(cfg, Parts):
        a, b = _split(of, a, b, C, cfg)
        z, of_a = ("" if of.batch is None else "Z "), ("" if of.batch is None or of.shared else "Z ")
        given = {
            "P": Tensor[f"S {of_a}" + ("L U" if of.a_transposed else "U L"), bf16],
            "Q": Tensor[f"S {z}" + ("L V" if of.b_transposed else "V L"), bf16],
        }

    def sums(A: Tensor, B: Tensor, C: Tensor, tail: NestTail | None, cfg: Any) -> None:  # noqa: ANN401 reason: of a kind
        match cfg:
            case Parts():
                p, q = zip(*(_as_rows(of, A[i], B[i]) for i in range(cfg.parts)), strict=True)
                sum_products_of_parts(p, q, C, cfg, tail)
            case AtOnce():
                split_and_multiply(*_as_rows(of, A, B), C, cfg, tail)
            case InRing():
                split_in_ring(*_as_rows(of, A, B), C, cfg, tail)
            case _:
                multiply_by_fmas(*_as_rows(of, A, B), C, cfg, tail)

    if cfg.chunk:
        depth = tensors[of.a.name].shape[0 if of.a_transposed else 1]
        part = workspace(f32, (ceil_div(depth, cfg.chunk), *C.shape))

        def chunks(A: Tensor, B: Tensor, part: Tensor, *, cfg: Any) -> None:  # noqa: ANN401 reason: of a kind
            sums(A, B, part, None, cfg)

        kernel(of_tensors(chunks, {**given, "part": Tensor["D M N", f32]}, type(cfg)))(a, b, part, cfg=cfg)

        def added(part: Tensor, C: Tensor, tail: NestTail | None, cfg: Adding) -> None:
            sum_chunks(part, C, cfg, tail)

        _with_tail(form, tensors, {"part": (part, Tensor["D M N", f32])}, added, Adding(_is_wide(cfg)))
        return
    _with_tail(form, tensors, dict(zip(given, zip((a, b), given.values(), strict=True), strict=True)), sums, cfg)


def _with_tail(
    form: Canonical,
    tensors: Mapping[str, Tensor],
    given: Mapping[str, tuple[Tensor, Any]],
    sums: Callable[..., None],
    cfg: Any,  # noqa: ANN401 reason: of a kind
) -> None:
    """The launch that stores the nest's output. given: what its sums are computed from, with annotations."""
    of, specs = _product(form), specs_of(form)
    result = form.parameters[-1].type.name
    operands = [name for name in specs if name in {each.tensor for each in _beside(form, of)} and name not in given]
    used = {**{name: spec for name, (_, spec) in given.items()}, result: specs[result]}

    def made(*own: Tensor, cfg: Any) -> None:  # noqa: ANN401 reason: of a kind
        named = dict(zip((*used, *operands), own, strict=True))
        known = {name: tensor for name, tensor in named.items() if name in specs}
        tail = _tail(form, known, sizes_of(form, known), wide=_is_wide(cfg))
        sums(*(named[each] for each in used), tail, cfg)

    function = of_tensors(made, {**used, **{name: specs[name] for name in operands}}, type(cfg))
    arguments = [*(tensor for tensor, _ in given.values()), tensors[result], *(tensors[name] for name in operands)]
    kernel(function)(*arguments, cfg=cfg)


def _split(of: Product, A: Tensor, B: Tensor, C: Tensor, cfg: Parts) -> tuple[Tensor, Tensor]:
    """The launches that split the operands into parts."""
    *z, M, N = C.shape
    in_a = () if of.shared else z
    L, U, V = (whole_chunks(each, cfg.padded) for each in (A.shape[-2 if of.a_transposed else -1], M, N))
    P = workspace(bf16, (cfg.parts, *in_a, *((L, U) if of.a_transposed else (M, L))))
    Q = workspace(bf16, (cfg.parts, *z, *((L, V) if of.b_transposed else (N, L))))
    for given, made in ((A, P), (B, Q)):
        splitting = split_batch if in_a or (z and given is B) else split_matrix
        splitting(given, made, cfg=Splitting(cfg.parts, cfg.wide))
    return P, Q


def _is_wide(cfg: Several | Adding) -> bool:
    """Whether rows of matrices are multiples of 16 bytes."""
    return cfg.vector > 1 if isinstance(cfg, Fma) else cfg.wide


def _as_rows(of: Product, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The operands as (rows, k) and (columns, k)."""
    return a.mT if of.a_transposed else a, b.mT if of.b_transposed else b


def _product(form: Canonical) -> Product:
    found = product_of_matrices(form)
    assert found is not None
    return found


def _beside(form: Canonical, of: Product) -> list[Read]:
    """What is read beside the operands of the product."""
    return [each for each in reads(form.nests[0].body) if of.depth.symbol not in symbols_of(each)]


def _tail(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], *, wide: bool) -> NestTail | None:
    """What is computed of the sums; None if they are the nest."""
    of, body = _product(form), form.nests[0].body
    if isinstance(body, Reduce):
        return None
    others = (of.batch,) if of.batch is not None else ()
    return NestTail(body, of.sums, (of.rows, of.columns), others, tensors, sizes, wide)
