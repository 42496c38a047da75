"""Matrix products: `mfma` and `warp_mma` over waves on register fragments, `wgmma` by a warpgroup on shared memory."""

from __future__ import annotations

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.atoms.registry import ATOMS
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, IntLike, as_cond, extent, extents
from argus.core.dsl.tiles.fragments import Fragment, check_dtype
from argus.core.dsl.tracer import current
from argus.core.dsl.views import Tensor
from argus.core.dtype import DType
from argus.core.index import Cond, Const
from argus.core.index_text import show
from argus.core.ir import Mma, View
from argus.core.target import Target
from argus.core.tiling import TiledMma, WarpgroupMma, smallest_k

Factor = Fragment | Tensor


@frozen
class MatrixInstruction:
    """A matrix instruction, to be tiled over waves by `over`."""

    atom: Atom

    def over(
        self, *, waves: tuple[int, int], tile: tuple[int, int], k: int | None = None, k_run: int | None = None
    ) -> TiledMma:
        """The instruction tiled over waves (along m, n) and a tile (m, n); see `TiledMma`.

        k: the extent of the fragments `A` and `B` along k; by default that of one execution of the instruction
        (`mm.A.tiled(k=64)` is a larger fragment). Raises E109 for extents that the instruction does not divide.
        """
        tv = self.atom.operands["a"].tv
        assert tv is not None
        across, covered = pair(waves, "`waves`"), pair(tile, "`tile`")
        run = tv.values.size() if k_run is None else extent(k_run, "`k_run`")
        depth = smallest_k(self.atom, run) if k is None else extent(k, "`k`")
        try:
            return TiledMma(self.atom, across, covered, run, depth)
        except ValueError as problem:
            fault("E109", str(problem), help="choose tile extents that are whole multiples of the instruction's")


def pair(values: tuple[IntLike, IntLike], what: str) -> tuple[int, int]:
    found = extents(values, what)
    if len(found) != 2:
        fault("E106", f"{what} is a pair, found {len(found)} integers", help="write `(rows, columns)`")
    return found[0], found[1]


def mfma(atom: Atom) -> MatrixInstruction:
    """The matrix instruction `atom`, to be tiled with `.over(...)`. Raises E106 for other atoms."""
    if not isinstance(atom, Atom) or atom.mnk is None:  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"`{atom}` is not a matrix instruction", help="write `mfma(mfma_f32_32x32x8_bf16)`")
    return MatrixInstruction(atom)


def warp_mma(dtype: DType) -> MatrixInstruction:
    """The matrix instruction of one warp (wave) of the kernel's target whose factors are `dtype`.

    Of several, the one with the smallest product of rows and columns. Raises E108 if the target has none.
    """
    target = current("warp_mma").target
    check_dtype(dtype)
    known = [atom for atom in ATOMS if _multiplies_by_warps(atom, target)]
    found = [atom for atom in known if all(atom.operands[role].dtype == dtype for role in ("a", "b"))]
    if not found:
        names = dict.fromkeys(str(atom.operands["a"].dtype) for atom in known)
        fault(
            "E108",
            f"no matrix instruction of one warp of {target} multiplies {dtype}",
            help=f"convert the factors to one of {', '.join(names)}",
        )
    return MatrixInstruction(min(found, key=_rows_by_columns))


def _multiplies_by_warps(atom: Atom, target: Target) -> bool:
    return atom.mnk is not None and target.name in atom.targets and atom.unit == target.unit


def _rows_by_columns(atom: Atom) -> int:
    assert atom.mnk is not None
    return atom.mnk[0] * atom.mnk[1]


def mma(mm: TiledMma | WarpgroupMma, acc: Fragment, a: Factor, b: Factor, *, init: Bool | bool = False) -> None:
    """acc = (init ? 0 : acc) + a b^T in place, on the register positions that the instruction defines.

    For `wgmma`, a is a tile (64, k) of shared memory or a fragment, and b a tile (n, k) of shared memory, or (k, n)
    with `b_major="n"`; the statement is one entry of the queue `wgmma`.
    """
    current("mma")
    if isinstance(mm, WarpgroupMma):
        _warpgroup_mma(mm, acc, a, b, as_cond(init))
        return
    if not isinstance(mm, TiledMma):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault(
            "E106", f"`mma` takes a tiled instruction, found {describe_value(mm)}", help="write `mfma(...).over(...)`"
        )
    held = [_check_fragment(fragment) for fragment in (acc, a, b)]
    _check_target(acc)
    mm = _with_k_of(mm, held[1])
    for role, fragment in zip(("c", "a", "b"), held, strict=True):
        _check_operand(mm, role, fragment)
    tracer = current("mma")
    tracer.emit(Mma(mm.atom, mm.tiling, acc.view, a.view, b.view, as_cond(init), span=tracer.span()))


def _with_k_of(mm: TiledMma, a: Fragment) -> TiledMma:
    """The instruction with k extended to that of the fragment of A, `mm.A.tiled(k=...)`."""
    if len(a.shape) != 2 or a.shape[0] != mm.tile[0] or a.shape[1] == mm.k or a.shape[1] % mm.k_step != 0:
        return mm
    return evolve(mm, k=a.shape[1])


def _check_fragment(factor: Factor) -> Fragment:
    if isinstance(factor, Fragment):
        return factor
    fault("E106", f"`mma` multiplies register tiles, found {describe_value(factor)}", help="copy into `registers(...)`")


def _check_target(target: Fragment) -> None:
    if not target.mutable:
        fault("E106", f"`{target.view.buffer.name}` is an immutable value", help="copy into `registers(...)`")


def _check_operand(mm: TiledMma, role: str, fragment: Fragment) -> None:
    wanted = {"a": mm.A, "b": mm.B, "c": mm.C}[role]
    name = fragment.view.buffer.name
    if fragment.layout.values.size() != wanted.values.size() or fragment.layout.threads.size() != wanted.threads.size():
        fault(
            "E206",
            f"operand {role} of `{mm.atom}` wants {wanted.values.size()} registers in {wanted.threads.size()} threads, "
            f"`{name}` has {fragment.layout.values.size()} in {fragment.layout.threads.size()}",
            help=f"make `{name}` with the layout `mm.{role.upper()}`",
        )
    dtype = mm.atom.operands[role].dtype
    if dtype is not None and fragment.dtype != dtype:
        fault("E206", f"operand {role} of `{mm.atom}` is {dtype}, `{name}` is {fragment.dtype}", help="convert it")


def _warpgroup_mma(mm: WarpgroupMma, acc: Fragment, a: Factor, b: Factor, init: Cond) -> None:
    held = _check_fragment(acc)
    _check_target(held)
    _check_registers(mm, "c", held)
    if mm.a_in_registers:
        left = _check_fragment(a)
        step = mm.atom.operands["a"].tile[1]
        if len(left.shape) == 2 and left.shape[1] % step == 0:
            mm = evolve(mm, k=left.shape[1])
        _check_registers(mm, "a", left)
    else:
        left = _check_shared(mm, "a", a)
    right = _check_shared(mm, "b", b)
    if mm.b_major == "n":
        right = right.T
    k = _k_extent(mm, "a", left.view, 64)
    if _k_extent(mm, "b", right.view, held.shape[1]) != k:
        fault(
            "E203",
            f"a product of {_view_text(left.view)} and {_view_text(right.view)}",
            help="give both one extent along k",
        )
    try:
        tiling = mm.tiling(k)
    except ValueError as problem:
        fault("E109", str(problem), help="take tiles of whole multiples of the instruction's k")
    tracer = current("mma")
    views = (held.view, left.view, right.view)
    tracer.emit(Mma(mm.atom, tiling, *views, init, tracer.grouped, span=tracer.span()))


def _check_shared(mm: WarpgroupMma, role: str, factor: Factor) -> Tensor:
    if not isinstance(factor, Tensor) or factor.view.buffer.space != "shared":
        fault(
            "E206",
            f"operand {role} of `{mm.atom}` is read from shared memory, found {describe_value(factor)}",
            help="pass a tile of `shared(...)`" + ('; `wgmma(..., a="registers")` takes A' if role == "a" else ""),
        )
    if factor.dtype != mm.atom.operands[role].dtype:
        wanted = mm.atom.operands[role].dtype
        fault("E206", f"operand {role} of `{mm.atom}` is {wanted}, `{factor.view.buffer.name}` is {factor.dtype}")
    return factor


def _check_registers(mm: WarpgroupMma, role: str, fragment: Fragment) -> None:
    wanted, dtype = mm.C if role == "c" else mm.A, mm.atom.operands[role].dtype
    if fragment.layout.threads.size() != wanted.threads.size() or fragment.layout.values.size() != wanted.values.size():
        fault(
            "E206",
            f"operand {role} of `{mm.atom}` wants {wanted.values.size()} registers in {wanted.threads.size()} threads, "
            f"`{fragment.view.buffer.name}` has {fragment.layout.values.size()} in {fragment.layout.threads.size()}",
            help=f"make it with the layout `mm.{role.upper()}`",
        )
    if fragment.dtype != dtype:
        name = fragment.view.buffer.name
        fault("E206", f"operand {role} of `{mm.atom}` is {dtype}, `{name}` is {fragment.dtype}", help="convert it")


def _k_extent(mm: WarpgroupMma, role: str, view: View, rows: int) -> int:
    """The extent along k of a factor of `rows` rows. Raises E203 for another shape."""
    if len(view.shape) != 2 or view.shape[0] is not algebra.const(rows) or not isinstance(view.shape[1], Const):
        fault(
            "E203",
            f"operand {role} of `{mm.atom}` is {_view_text(view)}, expected {rows} rows",
            help='take a tile of that many rows; with `b_major="n"`, B is (k, n)',
        )
    return view.shape[1].value


def _view_text(view: View) -> str:
    return f"`{view.buffer.name}` of ({', '.join(show(size) for size in view.shape)})"
