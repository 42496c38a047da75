"""Helpers for tests of the language: small kernels, and the line at which a diagnostic must point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import pytest
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.language import Template, Tensor, bf16, f32, gfx942, kernel, mfma, mfma_f32_32x32x8_bf16, spread

BY = spread((64, 32), threads=256, vector=8)
MM = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
Body = Callable[[Tensor, Tensor], None]


def template(body: Body, threads: int = 256) -> Template:
    """A kernel of A (M x K, bf16) and C (M x N, f32) that runs the body."""

    def traced(A: Tensor["M K", bf16], C: Tensor["M N", f32]) -> None:
        body(A, C)

    return kernel(target=gfx942, threads=threads)(traced)


def trace(body: Body) -> Kernel:
    return template(body).trace()


def fault_in(faulty: Template) -> Diagnostic:
    with pytest.raises(ArgusError) as caught:
        faulty.trace()
    return caught.value.diagnostic


def fault_of(body: Body) -> Diagnostic:
    return fault_in(template(body))


def marked(function: Callable[..., object]) -> tuple[str, int]:
    """File and number of the first line from the function's own on that ends in `# here`."""
    assert isinstance(function, FunctionType)
    code = function.__code__
    lines = Path(code.co_filename).read_text(encoding="utf-8").splitlines()
    numbers = range(code.co_firstlineno, len(lines) + 1)
    return code.co_filename, next(number for number in numbers if lines[number - 1].endswith("# here"))


@frozen
class Fault:
    """A body that must be refused with this code and words, at its marked line."""

    body: Body
    code: str
    words: tuple[str, ...]

    def check(self) -> None:
        found = fault_of(self.body)
        frame = found.primary.span.frame
        assert found.code == self.code, found.message
        assert [word for word in self.words if word not in found.message] == [], found.message
        assert frame is not None
        assert (frame.file, frame.line) == marked(self.body)


class Faults:
    """A list of faulty bodies, filled by its use as a decorator."""

    def __init__(self) -> None:
        self.all: list[Fault] = []

    def __call__(self, code: str, *words: str) -> Callable[[Body], Body]:
        def note(body: Body) -> Body:
            self.all.append(Fault(body, code, words))
            return body

        return note

    def parametrize(self) -> pytest.MarkDecorator:
        return pytest.mark.parametrize("fault", self.all, ids=[_name(fault.body) for fault in self.all])


def _name(body: Body) -> str:
    assert isinstance(body, FunctionType)
    return body.__name__
