"""The emitted text of an instruction's test kernel, executed on the CPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from argus.core.index_text import show
from argus.core.ir import Buffer
from argus.emit.cpu.compiler import compile_unit
from argus.runtime.cpu.launch import Limits, laid_out, run_unit, schedule_of, strides_of, view_of
from argus.runtime.cpu.validate import emitted, unit
from argus.testing.instructions.bits import digest, words_of
from argus.testing.instructions.trial import Array, Trial, drawn

SECONDS = 60.0
"""Time limit of a launch."""


def digests_on_cpu(made: Trial) -> dict[str, str]:
    """A digest of the bits of `C` for each draw of inputs, or what went wrong.

    Raises ArgusError (E303, E304) if the text does not compile.
    """
    text = emitted(made.kernel)
    own = unit(text)
    executable = compile_unit(own)
    found: dict[str, str] = {}
    for draw in made.draws:
        arrays = _arrays(made, drawn(made, draw))
        tensors = laid_out(made.kernel, made.sizes, arrays, frozenset())
        answer = run_unit(executable, own, made.kernel, text.info, made.sizes, tensors, schedule_of(0), Limits(SECONDS))
        if answer.ended or answer.findings:
            found[draw] = answer.ended or f"{answer.findings[0].kind}: {answer.findings[0].what}"
            continue
        held = answer.tensors["C"].held
        result = view_of(held, arrays["C"].shape, strides_of(made.kernel, "C", made.sizes))
        found[draw] = digest(_type_of(made, "C"), words_of(result))
    return found


def _arrays(made: Trial, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs, and `C` full of NaN."""
    return {
        buffer.name: inputs[buffer.name]
        if buffer.name in inputs
        else np.full(_shape(buffer, made.sizes), np.nan, buffer.dtype.numpy)
        for buffer in made.kernel.parameters
    }


def _shape(buffer: Buffer, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes[name] if (name := show(extent)) in sizes else int(name) for extent in buffer.shape)


def _type_of(made: Trial, name: str) -> str:
    return next(buffer.dtype.name for buffer in made.kernel.parameters if buffer.name == name)
