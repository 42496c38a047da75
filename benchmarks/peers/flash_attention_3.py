"""FlashAttention-3's forward kernel as a peer: bf16, head dimensions 64 and 128, on Hopper.

`python benchmarks/peers/flash_attention_3.py --flash-attention DIR --cutlass DIR` compiles it from checkouts of
FlashAttention and of the CUTLASS that is its submodule, with flash_attention_3.cu, into build/peers/libfa3.so, by the
options of FlashAttention's own setup; needs no GPU. `forward(load(), q, k, v, causal)` then is a call on torch tensors.

What the library leaves out, of what FlashAttention does by default: if there are fewer heads of k and v than of q, it
packs several heads of q in a tile where the rows of one would fill tiles badly.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import field, frozen

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent.parent / "build" / "peers" / "libfa3.so"
DIMS = (64, 128)
ALIGNED = 16
"""Bytes of which TMA wants each address and stride to be a multiple."""

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
    "BACKWARD",
    "PAGEDKV",
    "SPLIT",
    "APPENDKV",
    "LOCAL",
    "SOFTCAP",
    "PACKGQA",
    "FP16",
    "FP8",
    "VARLEN",
    "HDIM96",
    "HDIM192",
    "HDIM256",
    "SM8x",
    "HDIMDIFF64",
    "HDIMDIFF192",
)


# -- the library ---------------------------------------------------------------------------------------------


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
    sources = [hopper / "instantiations" / f"flash_fwd_hdim{dim}_bf16_sm90.cu" for dim in DIMS]
    sources.append(HERE / "flash_attention_3.cu")
    include = cutlass.resolve() / "include"
    missing = [path for path in (*sources, include / "cutlass" / "cutlass.h") if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"{missing[0]} does not exist")
    library.parent.mkdir(parents=True, exist_ok=True)
    options = [*OPTIONS, *(f"-DFLASHATTENTION_DISABLE_{name}" for name in UNUSED), f"-I{hopper}", f"-I{include}"]
    objects = [library.parent / f"{source.stem}.o" for source in sources]
    for source, compiled in zip(sources, objects, strict=True):
        print(f"compiling {source.name}", flush=True)
        _logged([nvcc, *options, "-c", str(source), "-o", str(compiled)], compiled.with_suffix(".log"))
    _logged([nvcc, *LINKED, "-o", str(library), *map(str, objects)], library.with_suffix(".log"))
    print(f"{library}: {library.stat().st_size} bytes")


def _logged(command: Sequence[str], log: Path) -> None:
    with log.open("w", encoding="utf-8") as text:
        subprocess.run(command, check=True, stdout=text, stderr=subprocess.STDOUT)  # noqa: S603 reason: nvcc, no shell


def load(library: Path = LIBRARY) -> ctypes.CDLL:
    """The library, with the types of its entry.

    Raises:
        OSError: it is not built, or cannot be loaded here.
    """
    loaded = ctypes.CDLL(str(library))
    pointers, sizes, strides = [ctypes.c_void_p] * 6, [ctypes.c_int] * 6, [ctypes.c_int64] * 12
    rest = [ctypes.c_float, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    loaded.fa3_forward.argtypes = [*pointers, *sizes, *strides, *rest]
    loaded.fa3_forward.restype = ctypes.c_int
    return loaded


# -- calls ---------------------------------------------------------------------------------------------------


@frozen(eq=False)
class Forward:
    """A call with all but the stream fixed; its tensors live as long as it does.

    Calls of one object share its outputs and, if causal, a counter of tiles: they must follow each other on a stream.
    """

    o: Any
    """The output, with the shape and, where these leave no gaps, the strides of q."""
    lse: Any
    """The logarithms of the sums of exponentials: float32 of shape (B, H, S)."""
    _torch: Any
    _entry: Any
    _arguments: tuple[Any, ...]
    _held: tuple[Any, ...] = field(repr=False)

    def __call__(self) -> Any:  # noqa: ANN401 reason: a tensor
        """Launch on torch's current stream; returns `o`."""
        error = self._entry(*self._arguments, self._torch.cuda.current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"FlashAttention-3 failed: CUDA error {error}")
        return self.o


def forward(library: ctypes.CDLL, q: Any, k: Any, v: Any, causal: bool) -> Forward:  # noqa: ANN401 reason: tensors
    """A call of the kernel: attention of q of shape (B, H, S, D), k and v of shape (B, H', T, D), H' a divisor of H.

    Scores are scaled by D^-½. Causal aligns the last query with the last key. Any layout with D innermost will do,
    if addresses and strides are multiples of 16 bytes.

    Raises:
        ValueError: the kernel, or this build of it, does not support these tensors.
    """
    torch = import_module("torch")
    _check(torch, q, k, v)
    batch, heads, rows, dim = q.shape
    o = torch.empty_like(q)
    lse = torch.empty((batch, heads, rows), device=q.device, dtype=torch.float32)
    semaphore = torch.zeros(1, device=q.device, dtype=torch.int32)
    _check_layout("the output", o)
    arguments = (
        *(tensor.data_ptr() for tensor in (q, k, v, o, lse, semaphore)),
        *(batch, heads, k.shape[1], rows, k.shape[2], dim),
        *(tensor.stride(axis) for tensor in (q, k, v, o) for axis in (0, 2, 1)),
        dim**-0.5,
        int(causal),
        torch.cuda.get_device_properties(q.device).multi_processor_count,
    )
    return Forward(o, lse, torch, library.fa3_forward, arguments, (q, k, v, semaphore))


def _check(torch: Any, q: Any, k: Any, v: Any) -> None:  # noqa: ANN401 reason: untyped
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dtype != torch.bfloat16:
            raise ValueError(f"{name} is {tensor.dtype}; only bfloat16 is supported")
        if tensor.device.type != "cuda" or tensor.device.index != torch.cuda.current_device():
            raise ValueError(f"{name} is on {tensor.device}, not on the current CUDA device")
        if tensor.dim() != 4 or not tensor.numel():
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; four extents, none of them 0, are supported")
        _check_layout(name, tensor)
    if torch.cuda.get_device_capability(q.device) != (9, 0):
        raise ValueError("the device is not of compute capability 9.0")
    if q.shape[-1] not in DIMS:
        raise ValueError(f"the head dimension is {q.shape[-1]}; only {DIMS[0]} and {DIMS[1]} are supported")
    if k.shape != v.shape:
        raise ValueError(f"k has shape {tuple(k.shape)} but v {tuple(v.shape)}")
    if k.shape[0] != q.shape[0] or k.shape[-1] != q.shape[-1]:
        raise ValueError(f"q has shape {tuple(q.shape)} but k {tuple(k.shape)}")
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} heads of q are no multiple of the {k.shape[1]} of k and v")


def _check_layout(name: str, tensor: Any) -> None:  # noqa: ANN401 reason: untyped
    if tensor.stride(-1) != 1:
        raise ValueError(f"the last stride of {name} is {tensor.stride(-1)}; only 1 is supported")
    steps = [tensor.stride(axis) * tensor.element_size() for axis in range(3)]
    if any(step % ALIGNED for step in (tensor.data_ptr(), *steps)):
        raise ValueError(f"the address or a stride of {name} is no multiple of {ALIGNED} bytes")


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
