"""DeepGEMM's kernels as peers on Hopper: products of bf16, and of e4m3 with scales of blocks, of matrices and experts.

`python benchmarks/peers/deep_gemm.py --deep-gemm DIR --cutlass DIR` compiles them from checkouts of DeepGEMM and of the
CUTLASS that is its submodule: one code object for each shape that is compared, as DeepGEMM compiles its templates on
their first call, by its options, with the tiles that it would choose. They go to build/peers/deep_gemm; needs no GPU.
deep_gemm_calls.py calls them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from math import inf
from pathlib import Path

from attrs import asdict, frozen

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / "build" / "peers" / "deep_gemm"
PROCESSORS = 132
"""Multiprocessors of an H200."""
BLOCK, E4M3, BF16, GROUP_ROWS = 128, "e4m3", "bf16", 128
"""Elements of K of a scale; the types of elements; of the rows of an expert, a multiple of these is stored."""
_MEMORY, _STAGES, _ROUND, _BARRIERS = 232_448, 16, 1024, 256
"""Shared memory of a block in bytes, the most stages, what a tile of D is rounded up to, and what barriers take."""
_L2, _L1 = 6153, 128 * PROCESSORS
"""Bytes a cycle that DeepGEMM counts on."""
_OPTIONS = (
    "-std=c++20",
    "--gpu-architecture=sm_90a",
    "-O3",
    "--ptxas-options=--register-usage-level=10",
    "--ptxas-options=-v",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "--diag-suppress=39,161,174,177,186,940",
    "-cubin",
)
_ENTRY = re.compile(r"Compiling entry function '(\w*_gemm_\w*)'")


@frozen
class Product:
    """C = A @ B^T of (m, k) and (n, k), or (experts, n, k) where `experts` is not 0: rows of an expert follow each
    other, from a multiple of `GROUP_ROWS` on. e4m3 has scales of 1 x 128 of A and 128 x 128 of B.
    """

    dtype: str
    m: int
    n: int
    k: int
    experts: int = 0

    @property
    def name(self) -> str:
        return f"{self.dtype}-{self.m}x{self.n}x{self.k}-{self.experts}"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return 1 if self.dtype == E4M3 else 2


@frozen
class Tiles:
    """What DeepGEMM compiles a kernel for: tiles of m x n, blocks along rows and columns that share operands, stages,
    and the shared memory that these take, in bytes.
    """

    m: int
    n: int
    along: tuple[int, int]
    stages: int
    memory: int

    @property
    def threads(self) -> int:
        """Of the warpgroups that multiply."""
        return 128 if self.m <= 64 else 256


def dense(dtype: str) -> list[Product]:
    """Matrices that are compared."""
    cubes = [Product(dtype, size, size, size) for size in (2048, 4096, 8192)]
    others = (4096, 14336, 4096), (4096, 4096, 14336), (16384, 8192, 2048), (128, 7168, 16384)
    return cubes + [Product(dtype, *each) for each in others]


def grouped_product(dtype: str, counts: Sequence[int], n: int, k: int) -> Product:
    """The product of experts with so many rows each."""
    return Product(dtype, sum(_up(count, GROUP_ROWS) for count in counts), n, k, len(counts))


def tiles_of(product: Product) -> list[Tiles]:
    """The tiles that DeepGEMM considers for a product."""
    heights = [64, 128, *(rows for rows in (16, 32) if product.m <= rows), 256]
    heights = [GROUP_ROWS] if product.experts else heights
    widths = range(16, (192 if product.dtype == E4M3 else 256) + 1, 16)
    found = [
        _with_stages(product, m, n, along)
        for along in ((1, 1), (1, 2), (2, 1))
        for m in heights
        for n in widths
        if not (m > 128 and n > 128) and (product.dtype == BF16 or _scales_fit(n))
    ]
    return [each for each in found if each.stages >= (4 if each.m * each.n < 128 * 192 else 3)]


def _scales_fit(columns: int) -> bool:
    """Whether the scales of B for a tile change at a multiple of a part of it."""
    more = columns - BLOCK
    return more <= 0 or columns % more == 0 or BLOCK % more == 0


def _with_stages(product: Product, m: int, n: int, along: tuple[int, int]) -> Tiles:
    scaled, deep = product.dtype == E4M3, 128 // product.size
    of_columns = -(-product.k // deep) * 4 * (1 if BLOCK % n == 0 else 2)
    fixed = _up(2 * m * n, _ROUND) + _BARRIERS + (_up(of_columns, 8) if scaled else 0)
    stage = 128 * (m + n) + (_up(4 * m, 128) if scaled else 0)
    stages = min((_MEMORY - fixed) // stage, _STAGES)
    return Tiles(m, n, along, stages, fixed + stages * stage)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def cycles(product: Product, tiles: Tiles) -> int | float:
    """DeepGEMM's estimate: what L1 or L2 need for all tiles, over the share of processors that are not idle."""
    m, n = tiles.m, tiles.n
    count = -(-product.m // m) * -(-product.n // n)
    rounds = -(-count // PROCESSORS)
    if tiles.along != (1, 1) and rounds <= 1:
        return inf
    stored = 2 * m * n
    deep = product.k * product.size
    l2 = (deep * (m // tiles.along[1] + n // tiles.along[0]) + stored) * count // _L2
    l1 = (deep * (m + n) + deep * (max(64, m) + n) + 2 * stored) * count // _L1
    return int(max(l1, l2) / (count / (rounds * PROCESSORS)))


def chosen(product: Product) -> Tiles:
    """The tiles that DeepGEMM chooses: the first of those with the fewest cycles."""
    return min(tiles_of(product), key=lambda tiles: cycles(product, tiles))


def swizzle_of(bytes_: int) -> int:
    """The widest swizzle of rows of so many bytes."""
    return next(span for span in (128, 64, 32, 16) if bytes_ % span == 0)


def source(product: Product, tiles: Tiles) -> str:
    """The text that instantiates a template. N and K are compiled in, M is not."""
    kind = "MGroupedContiguous" if product.experts else "Normal"
    common = [
        *(0, product.n, product.k, max(1, product.experts), tiles.m, tiles.n, 128 // product.size),
        *(128, 128, swizzle_of(2 * tiles.n), tiles.stages, 128, tiles.threads),
        *(tiles.along[0] * tiles.along[1], str(tiles.along[1] > 1).lower(), PROCESSORS, f"GemmType::{kind}"),
    ]
    if product.dtype == E4M3:
        name, first = "sm90_fp8_gemm_1d2d", ["cute::UMMA::Major::K"]
        last = ["cutlass::bfloat16_t", "epilogue::transform::EpilogueIdentity"]
    else:
        name, first = "sm90_bf16_gemm", 2 * ["cute::UMMA::Major::K"]
        last = ["false", "cutlass::bfloat16_t"]
    arguments = ", ".join(map(str, [*first, *common, *last]))
    instance = f"reinterpret_cast<const void*>(&deep_gemm::{name}_impl<{arguments}>)"
    return (
        f"#include <deep_gemm/impls/{name}.cuh>\nusing namespace deep_gemm;\n"
        f"static const void* instantiated() {{ return {instance}; }}\n"
    )


def build(products: Iterable[Product], deep_gemm: Path, cutlass: Path, folder: Path = FOLDER) -> None:
    """Compile a code object for each product, with a description beside it.

    Raises:
        FileNotFoundError: nvcc is not on the path, or a folder is no such checkout.
        subprocess.CalledProcessError: nvcc failed.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise FileNotFoundError("nvcc is not on the path")
    includes = deep_gemm.resolve() / "deep_gemm" / "include", cutlass.resolve() / "include"
    for path in (includes[0] / "deep_gemm" / "impls", includes[1] / "cutlass" / "cutlass.h"):
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
    folder.mkdir(parents=True, exist_ok=True)
    for product in products:
        tiles = chosen(product)
        text, code = folder / f"{product.name}.cu", folder / f"{product.name}.cubin"
        text.write_text(source(product, tiles), "utf-8")
        command = [nvcc, *_OPTIONS, *(f"-I{each}" for each in includes), "-o", str(code), str(text)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 reason: nvcc, no shell
        (symbol,) = _ENTRY.findall(done.stderr)
        about = {"symbol": symbol, "product": asdict(product), "tiles": asdict(tiles)}
        code.with_suffix(".json").write_text(json.dumps(about), "utf-8")
        registers = re.search(r"Used \d+ registers", done.stderr)
        print(f"{product.name}: {tiles}, {registers[0] if registers else ''}", flush=True)


def main() -> int:
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--deep-gemm", type=Path, required=True, help="a checkout of DeepGEMM")
    parser.add_argument("--cutlass", type=Path, required=True, help="a checkout of CUTLASS")
    given = parser.parse_args()
    sys.path.append(str(HERE.parent))
    shapes = import_module("grouped_shapes").shapes()
    of_experts = [grouped_product(dtype, each.counts, each.N, each.K) for each in shapes for dtype in (BF16, E4M3)]
    build(dict.fromkeys([*dense(E4M3), *of_experts]), given.deep_gemm, given.cutlass)
    return 0


if __name__ == "__main__":
    sys.exit(main())
