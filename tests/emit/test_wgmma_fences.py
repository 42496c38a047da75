"""`wgmma.fence` stands where the PTX ISA asks for it: ahead of the first wgmma, and after other code touched registers.

Exempt are accumulators of products of one shape that follow each other; the emitter makes no use of the exemption.
"""

from __future__ import annotations

import re

import pytest
from attrs import evolve

from argus.core.dtype import bf16, f32
from argus.core.ir import Kernel, Mma, walk
from argus.emit.cuda.text import cuda_text
from argus.runtime.cpu.validate import emitted, validate
from property_tests.programs import CORPUS, templates
from property_tests.small.holding import Holding

SIZES = {"M": 70, "K": 40, "N": 16}


def corpus(name: str) -> Kernel:
    return templates(CORPUS / "proved" / f"{name}.py")[0].trace()


def in_registers(how: str = "direct") -> Kernel:
    """A is loaded anew for each product."""
    return Holding(bf16, f32, how, 2, 1, 16, 16, (32, 32), turned=False, epilogue="").kernel()


KERNELS = [
    "cluster_shares_b",
    "attention_from_two_rings",
    "products_one_by_one",
    "split_k_in_a_cluster",
    "two_consumers",
]


@pytest.mark.parametrize("name", [*KERNELS, "in registers"])
def test_registers_are_pinned_then_fenced_ahead_of_each_product(name: str) -> None:
    kernel = in_registers() if name == "in registers" else corpus(name)
    lines = [line.strip() for line in cuda_text(kernel).text.splitlines()]
    body = lines[next(at for at, line in enumerate(lines) if line.startswith('extern "C"')) :]
    products = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Mma)]
    fences = [at for at, line in enumerate(body) if line == "wgmma_fence();"]
    calls = [at for at, line in enumerate(body) if re.match(r"wgmma_m64\w+\(", line)]

    assert len(fences) == len(products) == len(calls) > 0
    for fence, call, product in zip(fences, calls, products, strict=True):
        assert 0 < call - fence <= 3, "nothing but the loop over k lies between"
        held = [view.buffer for view in (product.target, product.a) if view.buffer.space == "register"]
        pinned = body[fence - len(held) : fence]
        assert all(line.startswith("hold(") for line in pinned)
        operands = re.findall(r"(\w+_)\b", body[call].split("(", 1)[1])
        assert {line[5:-2] for line in pinned} <= set(operands)


def agrees(kernel: Kernel, old: str, new: str, at: int = 0) -> bool:
    """Whether a text still agrees if the `at`-th occurrence of `old` is another."""
    made = emitted(kernel)
    parts = made.text.split(old)
    assert len(parts) > at + 1
    text = old.join(parts[: at + 1]) + new + old.join(parts[at + 1 :])
    return validate(
        kernel,
        [SIZES] if "K" in {s.name for s in kernel.sizes} and len(kernel.sizes) == 3 else (),
        seeds=2,
        made=evolve(made, text=text),
        seconds=20,
    ).right


@pytest.mark.parametrize("how", ["direct", "slot", "matrices"])
def test_a_in_registers_needs_the_fence(how: str) -> None:
    kernel = in_registers(how)

    assert agrees(kernel, "wgmma_fence();", "wgmma_fence();")
    assert not agrees(kernel, "wgmma_fence();", ";")


@pytest.mark.share(4)
@pytest.mark.parametrize("product", [0, 1])
def test_an_accumulator_that_is_touched_between_groups_needs_the_fence(product: int) -> None:
    """Scores that were read, and an output that was rescaled, ahead of the next product into them."""
    kernel = corpus("attention_from_two_rings")

    assert not agrees(kernel, "wgmma_fence();", ";", at=product)
