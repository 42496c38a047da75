"""Tensor maps in global memory that a kernel edits, for tensors that the launcher cannot describe in advance."""

from __future__ import annotations

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.tracer import Tracer, current
from argus.core.dsl.views import Tensor
from argus.core.dtype import i32
from argus.core.ir import Alloc, Buffer, Edit, Staged, View
from argus.core.layout import row_major

_WORDS = 32
"""The 4-byte words of a tensor map, which has 128 bytes [CUDA driver API, CUtensorMap]."""


class TensorMap:
    """A tensor map of this block in global memory, used by `copy(..., through=it)`."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def replace(self, tensor: Tensor) -> None:
        """Make the map describe this tensor. All copies through the map must have completed (I29)."""
        tracer = current("replace")
        view = _tensor_view(tensor)
        self._edit(tracer, "replace", view)

    def release(self) -> None:
        """Make earlier edits visible to threads that `acquire` the map afterwards."""
        self._edit(current("release"), "release")

    def acquire(self) -> None:
        """Make edits released before this visible to this thread's later copies."""
        self._edit(current("acquire"), "acquire")

    def _edit(self, tracer: Tracer, step: str, tensor: View | None = None) -> None:
        match step:
            case "replace" | "release" | "acquire":
                tracer.emit(Edit(self.buffer, step, tensor, span=tracer.span()))
            case _:
                raise AssertionError(step)


def _tensor_view(tensor: Tensor) -> View:
    if not isinstance(tensor, Tensor) or tensor.view.buffer.space != "global":  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        fault("E106", f"a tensor map describes a global tensor, found {describe_value(tensor)}")
    if tensor.outside is not None or tensor.view.where is not algebra.TRUE:
        fault("E106", "a tensor map cannot describe a computed view", help="give a parameter or an indexed one: `C[g]`")
    return tensor.view


def tensor_map() -> TensorMap:
    """A tensor map without contents yet.

    Raises E208 inside a role, loop or branch, E501 on a target without tensor maps.
    """
    tracer = current("tensor_map")
    if len(tracer.scopes) != 1:
        fault(
            "E208",
            "`tensor_map` is made inside a role, loop or branch",
            help="make it at the kernel's top level, before the roles",
        )
    if "bulk" not in tracer.target.queues:
        fault("E501", f"tensor maps of {tracer.target} are not built yet", help="use ordinary copies")
    shape = (algebra.const(_WORDS),)
    name, span = tracer.name("tensor_map"), tracer.span()
    buffer = Buffer(name, "map", i32, shape, Staged(row_major((_WORDS,))), align=128, span=span)
    tracer.emit(Alloc(buffer, span=span))
    return TensorMap(buffer)
