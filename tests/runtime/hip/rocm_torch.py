"""What operators need of torch on an AMD GPU, on the stand-in for the HIP runtime: tensors lie in its memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Self

import ml_dtypes
import numpy as np
from attrs import define, evolve, field

from tests.ops.fake_torch import Card, Matrix
from tests.ops.test_attention_gradient import Function
from tests.runtime.hip.stub import Stub

Array = np.ndarray[Any, Any]
TYPES: dict[str, Any] = {
    "torch.bfloat16": ml_dtypes.bfloat16,
    "torch.float16": np.float16,
    "torch.float32": np.float32,
    "torch.float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "torch.float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "torch.int8": np.int8,
    "torch.int32": np.int32,
    "torch.int64": np.int64,
}
"""NumPy's types of elements by torch's names."""
_UNWRITTEN = -77
"""What memory of integers holds that nothing has written."""
Placed = Callable[[Array], Array]
ONCE = SimpleNamespace(once_differentiable=lambda backward: backward)  # pyright: ignore[reportUnknownLambdaType]  # any
"""The part of `torch.autograd.function` that is used."""


@define
class Tensor(Matrix):
    """A tensor in the stand-in's memory. placed: copies an array to memory of its own there."""

    placed: Placed = field(kw_only=True)

    def __getitem__(self, item: int) -> Self:
        return evolve(self, array=self.array[item])

    def copied(self, how: str) -> Self:
        assert how in ("contiguous", "clone")
        return evolve(self, array=self.placed(self.array))

    def new_empty(self, shape: tuple[int, ...], *, dtype: object = None) -> Self:
        whole = str(dtype or self.dtype).startswith("torch.int")
        return self.new_full(shape, _UNWRITTEN if whole else np.nan, dtype=dtype)

    def new_full(self, shape: tuple[int, ...], value: float, *, dtype: object = None) -> Self:
        kind = str(dtype or self.dtype)
        return evolve(self, array=self.placed(np.full(shape, value, TYPES[kind])), dtype=kind)

    def detach(self) -> Self:
        return evolve(self, requires_grad=False)

    def reshape(self, *shape: int) -> Self:
        return evolve(self, array=self.array.reshape(shape))

    def transpose(self, first: int, second: int) -> Self:
        return evolve(self, array=np.swapaxes(self.array, first, second))

    def view(self, *shape: Any) -> Self:  # noqa: ANN401 reason: torch's, of a type or of extents
        if isinstance(shape[0], str):
            return evolve(self, array=self.array.view(TYPES[shape[0]]), dtype=shape[0])
        return self.reshape(*shape)

    @property
    def wide(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The values in double precision."""
        return self.array.astype(np.float64)


def gradients(given: Tensor, wanted: tuple[bool, ...]) -> tuple[Any, ...]:
    """What autograd has of the operands of the last call that it recorded, from the gradient of the result.

    wanted: of each operand, whether its gradient is.
    """
    function, context = Function.kept
    context.needs_input_grad = wanted
    return function.backward(context, given)


@define
class RocmTorch:
    """torch, with one device of the architecture that the stand-in reports. memory: the addresses of all tensors."""

    stub: Stub
    architecture: str = "gfx942:sramecc+:xnack-"
    memory: list[int] = field(factory=list[int])

    def placed(self, array: Array) -> Array:
        driver, size = self.stub.driver, max(1, array.nbytes)
        address = driver.allocate(size)
        self.memory.append(address)
        held = self.stub.at(address)[: array.nbytes].view(array.dtype).reshape(array.shape)
        held[...] = array
        return held

    def tensor(self, array: Array, dtype: str = "torch.bfloat16") -> Tensor:
        return Tensor(self.placed(array.astype(TYPES[dtype])), dtype, placed=self.placed)

    def normal(self, *shape: int, seed: int = 0, dtype: str = "torch.bfloat16") -> Tensor:
        return self.tensor(np.random.default_rng(seed).standard_normal(shape), dtype)

    def whole(self, *shape: int, seed: int = 0, dtype: str = "torch.bfloat16") -> Tensor:
        """Small whole numbers, of which products and short sums are exact."""
        return self.tensor(np.random.default_rng(seed).integers(-2, 3, shape), dtype)

    def release(self) -> None:
        for address in self.memory:
            self.stub.driver.free(address)
        self.memory.clear()

    def module(self) -> SimpleNamespace:
        """The module `torch`."""
        about = SimpleNamespace(name="AMD Instinct MI300X (stand-in)", gcnArchName=self.architecture, major=9, minor=4)
        cuda = SimpleNamespace(
            current_device=lambda: 0,
            current_stream=lambda _index=0: SimpleNamespace(cuda_stream=0),
            device=lambda _index: nullcontext(),  # pyright: ignore[reportUnknownLambdaType]
            get_device_name=lambda _index: about.name,  # pyright: ignore[reportUnknownLambdaType]
            get_device_properties=lambda _index: about,  # pyright: ignore[reportUnknownLambdaType]
            is_current_stream_capturing=lambda: False,
        )

        def full(shape: tuple[int, ...], value: float, *, dtype: str, device: str) -> Tensor:
            assert device == "cuda:0"
            return self.tensor(np.full(shape, value), dtype)

        def empty(shape: int | tuple[int, ...], *, dtype: str, device: object) -> Tensor:
            assert device == Card(0)
            return self.tensor(np.full(shape, _UNWRITTEN), dtype)

        return SimpleNamespace(
            cuda=cuda,
            autograd=SimpleNamespace(Function=Function, function=ONCE),
            full=full,
            empty=empty,
            is_grad_enabled=lambda: True,
            **{name.partition(".")[2]: name for name in TYPES},
        )
