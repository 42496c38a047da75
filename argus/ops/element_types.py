"""Names of element types, and the errors where no shipped kernel computes what is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from argus.core.diagnostic import ArgusError, Diagnostic

_TORCH: Mapping[str, str] = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float8_e4m3fn": "e4m3",
    "float8_e4m3fnuz": "e4m3fnuz",
    "int8": "i8",
}


def element_name(dtype: object) -> str:
    """Argus's name of an element type, which may be given as a type of Argus, torch or NumPy, or by name.

    >>> element_name("torch.bfloat16"), element_name("f16")
    ('bf16', 'f16')
    """
    last = str(dtype).rpartition(".")[2]
    return _TORCH.get(last, last)


def no_family(dtype: str, target: str, known: Iterable[tuple[str, str]]) -> ArgusError:
    """The error E414 for products of this element type on this target. known: the supported pairs."""
    pairs = sorted(f"{each} on {machine}" for each, machine in known)
    message = f"no family of kernels multiplies matrices of {dtype} on {target}"
    facts = (("families", ", ".join(pairs)),)
    return ArgusError(Diagnostic("E414", "error", message, facts=facts, help="convert the operands, or write a kernel"))


def no_kernel(operator: str, target: str, of: str = "", known: Iterable[str] = ()) -> ArgusError:
    """The error E414 where an operator has no kernel for a target. of: of which calls; all, if it is empty.

    known: the targets for which it has.
    """
    message = f"there is no proved kernel for {target} of {operator}{of and f' {of}'}"
    others = f"run it on a GPU of {' or '.join(known)}" if known else "convert the operands"
    return ArgusError(Diagnostic("E414", "error", message, help=f"{others}, or write a kernel"))


def no_schedule(shape: tuple[int, int, int], target: str, why: str) -> ArgusError:
    """The error E414 where the family has no schedule for these extents."""
    message = f"no schedule for {target} multiplies matrices of M, N, K = {', '.join(map(str, shape))}: {why}"
    return ArgusError(Diagnostic("E414", "error", message, help="pad the operands with zeros"))
