"""FlashAttention-3's kernels as peers on Hopper: forward in bf16 and e4m3, packed sequences, gradients.

`python benchmarks/peers/flash_attention_3.py --flash-attention DIR --cutlass DIR` compiles them from checkouts of
FlashAttention and of the CUTLASS that is its submodule, with flash_attention_3.cu, into build/peers/libfa3.so, by the
options of FlashAttention's own setup; needs no GPU. It takes about ten minutes. flash_attention_3_calls.py calls them.

What the library leaves out, of what FlashAttention does by default: if there are fewer heads of k and v than of q and
sequences are not packed, it packs several heads of q in a tile where the rows of one would fill tiles badly.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent.parent / "build" / "peers" / "libfa3.so"

DEVICE = "-gencode=arch=compute_90a,code=sm_90a"
OPTIONS = (
    DEVICE,
    "-O3",
    "-std=c++17",
    "--use_fast_math",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-DNDEBUG",
    "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED",
    "-DCUTLASS_ENABLE_GDC_FOR_SM90",
    "-DCUTLASS_DEBUG_TRACE_LEVEL=0",
    "--ptxas-options=-v",
    # Hidden: a process may hold another FlashAttention, torch's own for one, with functions of the same names.
    "--compiler-options=-fPIC,-fvisibility=hidden",
)
LINKED = (DEVICE, "-shared", "-cudart=static", "-Xlinker=--no-undefined", "-Xlinker=--exclude-libs=ALL")
UNUSED = (
    "PAGEDKV",
    "SPLIT",
    "APPENDKV",
    "LOCAL",
    "SOFTCAP",
    "PACKGQA",
    "FP16",
    "VARLEN",  # flash_attention_3_packed.cu has those that are compared
    "HDIM96",
    "HDIM192",
    "SM8x",
    "HDIMDIFF64",
    "HDIMDIFF192",
)
TAKEN = (
    "flash_prepare_scheduler",
    *(f"instantiations/flash_fwd_hdim{dim}_bf16_sm90" for dim in (64, 128)),
    *(f"instantiations/flash_fwd_hdim{dim}_e4m3_sm90" for dim in (64, 128, 256)),
    *(f"instantiations/flash_bwd_hdim{dim}_bf16_sm90" for dim in (64, 128)),
)
"""FlashAttention's own sources."""
PACKED = ((64, False), (128, False), (128, True))
"""Head dimensions of packed sequences, and whether a tile holds several heads of q."""


@frozen
class Part:
    """An object file: its name, its source, and what is defined for it."""

    name: str
    source: Path
    defined: tuple[str, ...] = ()


def parts(hopper: Path) -> list[Part]:
    """All object files of the library. hopper: that folder of FlashAttention."""
    taken = [Part(Path(each).name, hopper / f"{each}.cu") for each in TAKEN]
    packed = [
        Part(
            f"flash_attention_3_packed_{dim}{'_heads' if heads else ''}",
            HERE / "flash_attention_3_packed.cu",
            (f"-DHEAD_DIM={dim}", f"-DPACK_HEADS={str(heads).lower()}"),
        )
        for dim, heads in PACKED
    ]
    return [*taken, *packed, Part("flash_attention_3", HERE / "flash_attention_3.cu")]


def build(flash_attention: Path, cutlass: Path, library: Path = LIBRARY) -> None:
    """Compile the kernels and their C entry, one file at a time; what the compiler reports goes to a log beside each.

    Raises:
        FileNotFoundError: nvcc is not on the path, or a folder is no such checkout.
        subprocess.CalledProcessError: nvcc failed; its log tells why.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise FileNotFoundError("nvcc is not on the path")
    hopper = flash_attention.resolve() / "hopper"
    include = cutlass.resolve() / "include"
    sources = parts(hopper)
    missing = [
        path for path in (*(each.source for each in sources), include / "cutlass" / "cutlass.h") if not path.is_file()
    ]
    if missing:
        raise FileNotFoundError(f"{missing[0]} does not exist")
    library.parent.mkdir(parents=True, exist_ok=True)
    options = [*OPTIONS, *(f"-DFLASHATTENTION_DISABLE_{name}" for name in UNUSED), f"-I{hopper}", f"-I{include}"]
    objects: list[Path] = []
    for each in sources:
        compiled = library.parent / f"{each.name}.o"
        print(f"compiling {compiled.name}", flush=True)
        command = [nvcc, *options, *each.defined, "-c", str(each.source), "-o", str(compiled)]
        _logged(command, compiled.with_suffix(".log"))
        objects.append(compiled)
    _logged([nvcc, *LINKED, "-o", str(library), *map(str, objects)], library.with_suffix(".log"))
    print(f"{library}: {library.stat().st_size} bytes")


def _logged(command: Sequence[str], log: Path) -> None:
    with log.open("w", encoding="utf-8") as text:
        subprocess.run(command, check=True, stdout=text, stderr=subprocess.STDOUT)  # noqa: S603 reason: nvcc, no shell


def main() -> int:
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--flash-attention", type=Path, required=True, help="a checkout of FlashAttention")
    parser.add_argument("--cutlass", type=Path, required=True, help="a checkout of CUTLASS")
    chosen = parser.parse_args()
    build(chosen.flash_attention, chosen.cutlass)
    return 0


if __name__ == "__main__":
    sys.exit(main())
