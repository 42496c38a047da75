"""Which schedule computes a product of matrices with work on its sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from attrs import evolve

from argus.core.index import Const
from argus.kernels import gemm_f32, gemm_f32_at_once, gemm_f32_in_ring, gemm_fma, layouts
from argus.kernels.cost_sm_90a import H200, is_fitted, microseconds
from argus.kernels.gemm_fma import Fma
from argus.kernels.nests.made import has_own_integers
from argus.kernels.nests.products import Config, Several
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.parts import Parts
from argus.kernels.schedules.parts_in_ring import InRing
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.products import Product
from argus.ops.choice_f32 import candidates as of_f32

LARGE = 1 << 22
"""Products of elements from which on matrix units compute them."""
FEW = 64
"""Rows or columns of a product below which `argus.matmul` has schedules of its own, without work on the sums."""
_HALF = ("bf16", "f16")
_LOW = Parts()


_OF_F32 = (gemm_fma, gemm_f32_at_once, gemm_f32_in_ring, gemm_f32)


def configs_of(form: Canonical, of: Product, sizes: Mapping[str, int]) -> tuple[Config, ...]:
    """The configurations at these sizes, in order: after the chosen one, one of which more work on sums is proved.

    So are parts in memory, if the chosen one splits operands itself, and tiles of fewer rows. None where other
    templates are to compute the nest.
    """
    found = config_of(form, of, sizes)
    if isinstance(found, InRing):
        found = found, config_of(form, of, sizes, (gemm_f32,))
    elif isinstance(found, Parts) and found.bm > _LOW.bm:
        found = found, evolve(found, bm=_LOW.bm, stages=_LOW.stages, cluster=_LOW.cluster)
    else:
        found = (found,)
    return tuple(each for each in found if each is not None)


def config_of(form: Canonical, of: Product, sizes: Mapping[str, int], of_f32: Sequence[Any] = _OF_F32) -> Config | None:
    """The configuration at these sizes; None where other templates are to compute the nest. of_f32: modules."""
    m, n, k = (int(computed(axis.extent, sizes)) for axis in (of.rows, of.columns, of.depth))
    z = int(computed(of.batch.extent, sizes)) if of.batch is not None else 1
    kinds = {each.type.dtype for each in form.parameters if each.type.name in (of.a.name, of.b.name)}
    if z * m * n * k < LARGE or len(kinds) > 1:
        return None
    if kinds == {"f32"}:
        found = _of_f32(of, (z, m, n, k), of_f32)
        return None if not isinstance(found, Fma) and has_own_integers(form) else found
    return _of_half(of, (z, m, n, k)) if kinds <= set(_HALF) else None


def _of_f32(of: Product, sizes: tuple[int, int, int, int], modules: Sequence[Any]) -> Config | None:
    batched = of.batch is not None
    a, b = ("t" if of.a_transposed else "n"), ("n" if of.b_transposed else "t")
    family = f"{'bmm' if batched else 'gemm'}_{a}{b}{'_shared' if of.shared else ''}_f32"
    if family not in gemm_f32.FAMILIES:
        return None
    found = of_f32(
        family,
        sizes if batched else sizes[1:],
        a_transposed=of.a_transposed,
        b_transposed=of.b_transposed,
        device="",
        precision=torch.get_float32_matmul_precision(),
    )
    known = next((each for name in found if (each := _known(name, modules)) is not None), None)
    return _of_any_tiles(known or Parts(wide=False), of)


def _of_any_tiles(config: Several, of: Product) -> Config:
    """Row-major tiles where their numbers are literal, which a super-tile is not proved for."""
    if not isinstance(config, Parts | InRing) or not any(
        isinstance(axis.extent, Const) for axis in (of.rows, of.columns)
    ):
        return config
    return evolve(config, group=0)


def _known(name: str, modules: Sequence[Any]) -> Several | None:
    """The configuration of a name; None of those for few rows, whose results are not worked on."""
    for module in modules:
        found = module.configuration(name)
        if found is not None:
            return found
    return None


def _of_half(of: Product, sizes: tuple[int, int, int, int]) -> Config | None:
    """Of 16 bits: of the schedules that have epilogues the one with the least modelled time."""
    z, m, n, k = sizes
    known = layouts.configs_for(m, n, k, a_transposed=of.a_transposed, b_transposed=of.b_transposed)
    fitted = [each for each in known.values() if isinstance(each, Hopper) and is_fitted(each, H200)]
    return min(fitted, key=lambda each: microseconds(each, z * -(-m // each.bm) * each.bm, n, k), default=None)
