"""vLLM's fused MoE kernel in Triton as a peer: one product of rows that are sorted by expert, in bf16 or e4m3.

`python benchmarks/peers/vllm_moe.py FUSED_MOE` takes the kernel out of a checkout's or a wheel's
`vllm/model_executor/layers/fused_moe/fused_moe.py`, as it is, into build/peers/vllm_moe; needs no GPU. `fastest`
has it with the fastest of some configurations: an upper bound on what vLLM's own tables of configurations give.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from attrs import frozen

FOLDER = Path(__file__).resolve().parent.parent.parent / "build" / "peers" / "vllm_moe"
FILE = "fused_moe_kernel.py"
_TAKEN = "write_zeros_to_output", "fused_moe_kernel"
_HEAD = "import triton\nimport triton.language as tl\n\n\n"
BLOCK = 128
"""Elements along both axes that have a scale of e4m3."""


@frozen
class Tiles:
    """A configuration: tiles of rows x columns x depth, rows of tiles of a super-tile, warps, and stages."""

    rows: int
    columns: int
    depth: int
    group: int
    warps: int
    stages: int

    @property
    def name(self) -> str:
        return "_".join(map(str, (self.rows, self.columns, self.depth, self.group, self.warps, self.stages)))


BF16 = (
    *(Tiles(128, 256, 64, group, 8, stages) for group in (1, 8, 16) for stages in (3, 4)),
    *(Tiles(128, 128, 64, group, 8, stages) for group, stages in ((1, 4), (16, 3))),
    Tiles(64, 256, 64, 8, 4, 4),
)
E4M3 = (
    *(Tiles(128, 128, BLOCK, group, 8, 3) for group in (1, 32)),
    *(Tiles(128, 128, BLOCK, 1, warps, 4) for warps in (8, 4)),
    *(Tiles(64, 128, BLOCK, group, 4, 3) for group in (1, 32)),
)
"""Those that are tried, vLLM's defaults for many tokens among them. The first ones of bf16 were the fastest of 48 on an
H200, for experts of 128 to 4096 rows.
"""


def taken(text: str) -> str:
    """The kernel and what it calls, out of the text of vLLM's module.

    Raises:
        ValueError: the text has no such functions.
    """
    found = {each.name: each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)}
    missing = [name for name in _TAKEN if name not in found]
    if missing:
        raise ValueError(f"the text has no function {' or '.join(missing)}")
    lines = text.splitlines()
    parts = [lines[_first(found[name]) - 1 : found[name].end_lineno] for name in _TAKEN]
    return _HEAD + "\n\n\n".join("\n".join(part) for part in parts) + "\n"


def _first(made: ast.FunctionDef) -> int:
    """The line of the first decorator."""
    return min(made.lineno, *(each.lineno for each in made.decorator_list))


# -- on the GPU ----------------------------------------------------------------------------------------------


def loaded(folder: Path = FOLDER) -> Any:  # noqa: ANN401 reason: Triton's
    """The kernel; None if it has not been taken out, or without Triton."""
    spec = spec_from_file_location("vllm_fused_moe_kernel", folder / FILE)
    if spec is None or spec.loader is None or not (folder / FILE).is_file():
        return None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError:
        return None
    return module.fused_moe_kernel


def sorted_rows(torch: Any, counts: Sequence[int], height: int, device: str) -> tuple[Any, Any, Any]:  # noqa: ANN401 reason: untyped
    """As vLLM aligns blocks: the row of each place, those of each expert from a multiple of a tile's rows on, and of
    places beyond them the number of all rows; the expert of each tile; and the number of places.
    """
    rows, first = sum(counts), [0, *accumulate(counts)]
    places: list[Any] = []
    owners: list[int] = []
    for e, count in enumerate(counts):
        tiles = -(-count // height)
        held = torch.full((tiles * height,), rows, dtype=torch.int32)
        held[:count] = torch.arange(first[e], first[e] + count)
        places.append(held)
        owners += [e] * tiles
    every = torch.cat(places)
    total = torch.tensor([every.shape[0]], dtype=torch.int32)
    return tuple(each.to(device) for each in (every, torch.tensor(owners, dtype=torch.int32), total))


def launch(
    kernel: Any,  # noqa: ANN401 reason: Triton's
    torch: Any,  # noqa: ANN401 reason: untyped
    operands: tuple[Any, Any, Any],
    scales: tuple[Any, Any] | None,
    counts: Sequence[int],
    tiles: Tiles,
) -> Callable[[], None]:
    """C[r] = B[e] A[r] for the expert e of each row. operands: A of (rows, K), B of (experts, N, K), C of (rows, N).

    scales: of e4m3, of A of shape (rows, K / 128), row-major, and of B of shape (experts, N / 128, K / 128).
    """
    bf16 = import_module("triton.language").bfloat16
    a, b, c = operands
    places, owners, total = sorted_rows(torch, counts, tiles.rows, str(a.device))
    count = places.shape[0] // tiles.rows * -(-b.shape[1] // tiles.columns)
    of_a, of_b = scales or (None, None)
    strides = (
        (0,) * 5 if of_a is None or of_b is None else (*of_a.stride(), of_b.stride(0), of_b.stride(2), of_b.stride(1))
    )
    ends = (places, owners, total, b.shape[1], b.shape[2], places.shape[0], a.shape[0])
    through = (*a.stride(), b.stride(0), b.stride(2), b.stride(1), *c.stride(), *strides, 0, 0)
    kinds = {
        "group_n": BLOCK if scales else 0,
        "group_k": BLOCK if scales else 0,
        "naive_block_assignment": False,
        "BLOCK_SIZE_M": tiles.rows,
        "BLOCK_SIZE_N": tiles.columns,
        "BLOCK_SIZE_K": tiles.depth,
        "GROUP_SIZE_M": tiles.group,
        "SPLIT_K": 1,
        "MUL_ROUTED_WEIGHT": False,
        "top_k": 1,
        "compute_type": bf16,
        "use_fp8_w8a8": scales is not None,
        "use_int8_w8a8": False,
        "use_int8_w8a16": False,
        "per_channel_quant": False,
        "HAS_BIAS": False,
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
    }
    kinds |= {name: False for name in ("SWAP_AB", "USE_TD") if name in kernel.arg_names}  # of newer texts

    def call() -> None:
        kernel[(count,)](a, b, c, None, of_a, of_b, None, *ends, *through, **kinds)

    return call


def compiled(tiles: Sequence[Tiles], *, scaled: bool) -> None:
    """Compile configurations in as many processes, into Triton's cache."""
    with ProcessPoolExecutor(len(tiles), mp_context=get_context("spawn")) as pool:
        for problem in pool.map(partial(_compile, scaled=scaled), tiles):
            if problem:
                print(f"vLLM: {problem}", flush=True)


def _compile(tiles: Tiles, *, scaled: bool) -> str:
    """Why it does not compile. Triton has kernels of their own for strides that are no multiples of 16."""
    torch: Any = import_module("torch")
    kernel, counts, columns = loaded(), (256, 256), 2048
    kind = torch.float8_e4m3fn if scaled else torch.bfloat16
    for deep in (16, 7) if scaled else (16,):
        a, b = (
            torch.zeros(extents, device="cuda").to(kind)
            for extents in ((512, BLOCK * deep), (2, columns, BLOCK * deep))
        )
        c = torch.empty((512, columns), device="cuda", dtype=torch.bfloat16)
        of_both = torch.ones((512, deep), device="cuda"), torch.ones((2, columns // BLOCK, deep), device="cuda")
        try:
            launch(kernel, torch, (a, b, c), of_both if scaled else None, counts, tiles)()
            torch.cuda.synchronize()
        except Exception as problem:  # noqa: BLE001 reason: configurations need not fit
            return f"{tiles.name}: {problem}"
    return ""


def fastest(
    torch: Any,  # noqa: ANN401 reason: untyped
    operands: tuple[Any, Any, Any],
    scales: tuple[Any, Any] | None,
    counts: Sequence[int],
) -> tuple[str, Callable[[], None]] | None:
    """The configuration that takes the least time of five calls, and its call; None if the kernel was not taken out."""
    kernel, found = loaded(), dict[str, tuple[float, Callable[[], None]]]()
    for tiles in () if kernel is None else BF16 if scales is None else E4M3:
        made = launch(kernel, torch, operands, scales, counts, tiles)
        try:
            found[tiles.name] = _milliseconds(torch, made), made
        except Exception as problem:  # noqa: BLE001 reason: configurations need not fit
            print(f"vLLM {tiles.name}: {problem}", flush=True)
    if not found:
        return None
    best = min(found, key=lambda name: found[name][0])
    return best, found[best][1]


def _milliseconds(torch: Any, call: Callable[[], None]) -> float:  # noqa: ANN401 reason: untyped
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()
    begin.record()
    for _ in range(5):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path, help="vLLM's fused_moe.py")
    chosen = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / FILE).write_text(taken(chosen.source.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
