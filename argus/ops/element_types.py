"""What a product of matrices asks of the shipped families: names of element types, and the refusal where none fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from argus.core.diagnostic import ArgusError, Diagnostic

_TORCH: Mapping[str, str] = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float8_e4m3fn": "e4m3"}


def element_name(dtype: object) -> str:
    """The name of an element type as Argus has it, of its own types, of torch's and NumPy's, and of names.

    >>> element_name("torch.bfloat16"), element_name("f16")
    ('bf16', 'f16')
    """
    last = str(dtype).rpartition(".")[2]
    return _TORCH.get(last, last)


def no_family(dtype: str, target: str, known: Iterable[tuple[str, str]]) -> ArgusError:
    """E414 for products of these elements on this machine. known: element types and targets that have families."""
    pairs = sorted(f"{each} on {machine}" for each, machine in known)
    message = f"no family of kernels multiplies matrices of {dtype} on {target}"
    facts = (("families", ", ".join(pairs)),)
    return ArgusError(Diagnostic("E414", "error", message, facts=facts, help="convert the operands, or write a kernel"))


def no_schedule(shape: tuple[int, int, int], target: str, why: str) -> ArgusError:
    """E414 where the family has no schedule for these extents."""
    message = f"no schedule for {target} multiplies matrices of M, N, K = {', '.join(map(str, shape))}: {why}"
    return ArgusError(Diagnostic("E414", "error", message, help="pad the operands with zeros"))
