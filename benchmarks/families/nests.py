"""Cases of nests of reductions, windows and scans at the sizes of KernelBench's first level, and variants of each."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Functions of torch, which is untyped.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import evolve, frozen

from argus.core.index import Const
from argus.kernels.config_names import name_of
from argus.kernels.nests import long_rows, made, pointwise, reductions, scans, windows
from argus.kernels.nests.pointwise import Pointwise
from argus.kernels.nests.reductions import Reductions
from argus.kernels.nests.scans import Scans
from argus.kernels.nests.windows import Windows
from argus.kernels.rows import softmax
from argus.kernels.schedules.rows import Rows
from argus.language import Template
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.nest import Axis, Nest, Read, Reduce, TensorType, size
from argus.nests.partials import in_parts, moments
from argus.nests.rewrite import reductions as reductions_of
from argus.testing import nest_cases as cases
from argus.testing.nest_cases import Case, Window, apply, number, read, square, tensor

Given = Mapping[str, int]
Tensors = Mapping[str, Any]
Function = Callable[..., Any]


@frozen
class Launch:
    """One kernel. operands: parameter, tensor, shape, and whether the kernel makes it."""

    form: Canonical
    schedule: made.Schedule
    config: Any
    sizes: Given
    operands: tuple[tuple[str, str, tuple[int, ...], bool], ...]

    def template(self, name: str) -> Template:
        return made.template(self.form, self.schedule, self.config, name)


@frozen
class RowLaunch:
    """A kernel of `argus.kernels.rows` of X (R, N), and its configuration."""

    of: Template
    config: Rows
    sizes: Given

    @property
    def operands(self) -> tuple[tuple[str, str, tuple[int, ...], bool], ...]:
        shape = (self.sizes["R"], self.sizes["N"])
        return ("X", "X", shape, False), ("Y", "Y", shape, True)

    def template(self, name: str) -> Template:
        return evolve(self.of, configs={"": self.config}, name=name)


SCHEDULES: Mapping[type, made.Schedule] = {
    Pointwise: pointwise.pointwise,
    Windows: windows.windows,
    Scans: scans.scans,
    Rows: long_rows.long_rows,
    Reductions: reductions.reduced,
}
"""The template of each configuration."""


def _other_orders(config: Any) -> Sequence[Any]:  # noqa: ANN401 reason: any configuration
    """The same, with blocks that start one after the other neighbours along the first axis, not the last."""
    ordered = isinstance(config, Pointwise | Windows | Reductions) and config.in_order
    return (evolve(config, in_order=False),) if ordered else ()


@frozen(slots=False)
class NestCase:
    """A computation. shapes: of its inputs. function: of torch and the inputs, by torch. moved: elements that it reads
    and writes at least. unit: what an error is relative to, beside the value. configs: of the last launch, to be tried.
    """

    nests: tuple[tuple[Nest, ...], ...]
    types: tuple[TensorType, ...]
    given: Given
    function: Function
    result: int
    unit: float = 1.0
    close: float = 2.0**-14
    configs: tuple[Any, ...] = ()
    rows: Template | None = None

    @cached_property
    def variants(self) -> Mapping[str, tuple[Launch | RowLaunch, ...]]:
        launches = _launches(self.nests, self.types, self.given)
        found: dict[str, tuple[Launch | RowLaunch, ...]] = {"argus": launches}
        for each in (*_other_orders(launches[-1].config), *self.configs):
            schedule = SCHEDULES[type(each)]
            found[name_of(each)] = (*launches[:-1], evolve(launches[-1], config=each, schedule=schedule))
        if self.rows is not None:
            rows, length = self.given.values()
            sizes = {"R": rows, "N": length}
            found["rows_in_clusters"] = (RowLaunch(self.rows, _CLUSTERS, sizes),)
        return found

    def shape(self, of: TensorType) -> tuple[int, ...]:
        return tuple(int(computed(extent, self.given)) for extent in of.shape)

    @property
    def bytes(self) -> float:
        """The bytes that have to be moved."""
        return 4.0 * (sum(_count(self.shape(each)) for each in self.types) + self.result)

    def inputs(self, torch: Any) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
        torch.manual_seed(7)
        return {each.name: torch.rand(self.shape(each), device="cuda") for each in self.types}

    def exact(self, torch: Any, inputs: Tensors) -> Any:  # noqa: ANN401 reason: untyped
        """In float64, one sample after another where the samples are independent."""
        return self.function(torch, **{name: each.double() for name, each in inputs.items()})


def _count(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _launches(groups: Sequence[tuple[Nest, ...]], types: Sequence[TensorType], given: Given) -> tuple[Launch, ...]:
    known = {each.name: each for each in types}
    found: list[Launch] = []
    for group in groups:
        found.append(_launch(group, known, given))
        known |= {nest.output: nest.type for nest in group}
    return tuple(found)


def _launch(group: tuple[Nest, ...], known: Mapping[str, TensorType], given: Given) -> Launch:
    terms = reductions_of(*(nest.body for nest in group))
    windowed = any(isinstance(axis.extent, Const) and axis.extent.value <= 16 for each in terms for axis in each.axes)
    form = canonical(group, known, given, 5 if windowed else 3, join=not windowed)
    sizes = {name: int(computed(extent, given)) for name, extent in form.sizes.items()}
    outputs = {nest.output for nest in group}
    operands = tuple(
        (each.type.name, each.source, tuple(int(computed(e, sizes)) for e in each.type.shape), each.source in outputs)
        for each in form.parameters
    )
    tried: Sequence[Any] = (pointwise, windows, scans, long_rows, reductions)
    config = next(found for each in tried if (found := each.config_for(form, sizes)) is not None)
    return Launch(form, SCHEDULES[type(config)], config, sizes, operands)


def one_nest(case: Case, given: Given, function: Function, result: int, **more: Any) -> NestCase:  # noqa: ANN401 reason: fields
    return NestCase((case.nests,), case.inputs, given, function, result, **more)


# -- norms and losses of several launches --------------------------------------------------------------------

N, C, P, S = (Axis(name, size(name.upper())) for name in ("n", "c", "p", "s"))
_IMAGES = tensor("X", N.extent, C.extent, P.extent, S.extent)
_ALL = (N, C, P, S)
_X = read("X", *(axis.index for axis in _ALL))


def _of(nest: Nest, *index: Axis) -> Read:
    return read(nest.output, *(axis.index for axis in index))


def _grouped(nests: Sequence[Nest]) -> list[tuple[Nest, ...]]:
    """Nests that follow each other and have one domain as one launch."""
    found: list[tuple[Nest, ...]] = []
    for nest in nests:
        if found and found[-1][0].domain == nest.domain:
            found[-1] = (*found[-1], nest)
        else:
            found.append((nest,))
    return found


def normed(kept: tuple[Axis, ...], given: Given, function: Function, weights: tuple[Axis, ...] = ()) -> NestCase:
    """(x - mean) / sqrt(variance + eps) of images, over all axes but those kept, and weights and biases along some."""
    stats = moments("m", _X, kept, tuple(axis for axis in _ALL if axis not in kept), given)
    mean, variance = (_of(nest, *kept) for nest in stats[-2:])
    scale = apply("rsqrt", apply("add", variance, cases.Constant(1e-5)))
    body: Any = apply("mul", apply("sub", _X, mean), scale)
    types = [_IMAGES]
    if weights:
        own = [axis.index for axis in weights]
        body = apply("add", apply("mul", body, read("G", *own)), read("H", *own))
        types += [tensor(name, *(axis.extent for axis in weights)) for name in ("G", "H")]
    groups = (*_grouped(stats), (Nest("Y", "f32", _ALL, body),))
    return NestCase(groups, tuple(types), given, function, _count(tuple(given.values())))


def _frobenius(given: Given) -> tuple[tuple[Nest, ...], ...]:
    total = Nest("t", "f32", (), Reduce("add", _ALL, square(_X)))
    norm = Nest("Y", "f32", _ALL, apply("div", _X, apply("sqrt", Read("t", (), "f32"))))
    return (*((each,) for each in in_parts(total, given)), (norm,))


def _loss(of: Callable[[Any, Any], Any]) -> tuple[tuple[Nest, ...], ...]:
    """The mean of all elements: of rows, then of these."""
    rows = Nest(
        "r",
        "f32",
        (cases.A,),
        Reduce("add", (cases.J,), of(read("X", cases.A.index, cases.J.index), read("Z", cases.A.index, cases.J.index))),
    )
    mean = apply(
        "div",
        apply("div", Reduce("add", (cases.A,), _of(rows, cases.A)), number(cases.A.extent)),
        number(cases.J.extent),
    )
    return (rows,), (Nest("Y", "f32", (), mean),)


def _pairs() -> tuple[TensorType, ...]:
    return tuple(tensor(name, cases.A.extent, cases.J.extent) for name in ("X", "Z"))


# -- the cases -----------------------------------------------------------------------------------------------

_COLUMNS = {"A": 128, "J": 4096, "B": 4095}
_SQUARE = {"A": 32768, "J": 32768}
_BATCH = {"N": 64, "C": 64, "P": 16, "S": 1 << 14}
_INSTANCES = {"N": 112, "C": 64, "P": 16, "S": 1 << 14}
_LAYERS = {"N": 16, "C": 64, "P": 4, "S": 1 << 14}
_WIDE = (
    Reductions(256, 32, 1, 4, columns=True),
    Reductions(256, 64, 1, 8, columns=True),
    Reductions(512, 32, 1, 8, columns=True),
    Reductions(128, 32, 1, 16, columns=True),
)
_LONG = (Reductions(1024, 1, 4, 4), Reductions(256, 1, 4, 4), Reductions(512, 1, 4, 8))
_ODD = (Reductions(1024, 1, 1, 8), Reductions(512, 1, 1, 8))
_POOLS = (Windows(128, 128, 1), Windows(128, 64, 2), Windows(256, 128, 4), Windows(128, 32, 4))
_CLUSTERS = Rows(1024, 1, 4, 12, staged=True, blocks=8, whole=True)
"""Rows of 393216 elements in the shared memory of eight blocks."""
_IN_ORDER = (Scans(512, 4, 4), Scans(256, 4, 8), Scans(1024, 4, 2), Scans(512, 4, 2))
_BACK = (Scans(512, 1, 8), Scans(256, 1, 8), Scans(1024, 1, 8))


def _pool(torch: Any, kind: str, X: Any, *arguments: Any) -> Any:  # noqa: ANN401 reason: untyped; an input's name
    return getattr(torch.nn.functional, kind)(X, *arguments)


def _pooled(op: Any, kind: str, given: Given, window: Window, result: int) -> NestCase:  # noqa: ANN401 reason: an operation
    rank = int(kind[-2])
    arguments: tuple[Any, ...] = (window.count, window.stride, window.padding)
    arguments += (window.dilation,) if op == "max" else ()
    return one_nest(
        cases.pool(op, *[window] * rank),
        given,
        lambda torch, X: _pool(torch, kind, X, *arguments),
        result,
        configs=_POOLS,
    )


def _depthwise(given: Given, result: int, *windows_: Window) -> NestCase:
    def function(torch: Any, X: Any, F: Any) -> Any:  # noqa: ANN401 reason: untyped; inputs' names
        return torch.nn.functional.conv2d(X, F.unsqueeze(1), groups=X.shape[1])

    return one_nest(cases.depthwise(*windows_), given, function, result, configs=_POOLS, unit=1.0)


def _rms(torch: Any, X: Any) -> Any:  # noqa: ANN401 reason: untyped; an input's name
    return X / torch.sqrt((X * X).mean(1, keepdim=True) + cases.EPSILON)


def _batch_norm(torch: Any, X: Any, G: Any, H: Any) -> Any:  # noqa: ANN401 reason: untyped; inputs' names
    return torch.nn.functional.batch_norm(X, None, None, G, H, True)


CASES: dict[str, NestCase] = {
    "sum47": one_nest(
        cases.reduced("add", columns=True), _COLUMNS, lambda _, X: X.sum(1), 128 * 4095, unit=64.0, configs=_WIDE
    ),
    "scan89": one_nest(cases.scan("add"), _SQUARE, lambda _, X: X.cumsum(1), 1 << 30, unit=256.0, configs=_IN_ORDER),
    "pool42": _pooled(
        "max", "max_pool2d", {"N": 32, "C": 64, "H": 512, "W": 512}, Window(4, 1, 1), 32 * 64 * 511 * 511
    ),
    "batch33": normed((C,), _BATCH, _batch_norm, (C,)),
    "softmax23": one_nest(
        cases.along(cases.softmax, columns=False),
        {"A": 4096, "J": 393216},
        lambda torch, X: torch.softmax(X, 1),
        4096 * 393216,
        unit=1e-6,
        close=1e-3,
        configs=_LONG,
        rows=softmax.softmax_f32,
    ),
    "depthwise82": _depthwise({"N": 16, "C": 64, "H": 512, "W": 512}, 16 * 64 * 510 * 510, Window(3), Window(3)),
    "mse94": NestCase(_loss(cases.squared_error), _pairs(), _SQUARE, lambda _, X, Z: ((X - Z) ** 2).mean().view(1), 1),
    "rms36": one_nest(
        cases.along(cases.rms_norm, columns=True),
        {"A": 112, "J": 64, "B": 1 << 18},
        _rms,
        112 * (1 << 24),
        configs=(
            Reductions(256, 32, 4, 8, columns=True, held=True),
            Reductions(128, 32, 4, 16, columns=True, held=True),
            Reductions(256, 32, 2, 8, columns=True, held=True),
        ),
    ),
    "reversed91": one_nest(
        cases.scan("add", backwards=True),
        _SQUARE,
        lambda _, X: X.flip(1).cumsum(1).flip(1),
        1 << 30,
        unit=256.0,
        configs=_BACK,
    ),
    "pool45": _pooled(
        "add", "avg_pool2d", {"N": 16, "C": 64, "H": 2048, "W": 2048}, Window(11, 11), 16 * 64 * 186 * 186
    ),
    "max49": one_nest(cases.reduced("max", columns=True), _COLUMNS, lambda _, X: X.amax(1), 128 * 4095, configs=_WIDE),
    "pool43": _pooled(
        "max", "max_pool3d", {"N": 16, "C": 32, "D": 128, "H": 128, "W": 128}, Window(3, 2, 1, 3), 16 * 32 * 62**3
    ),
    "pool41": _pooled("max", "max_pool1d", {"N": 64, "C": 192, "W": 65536}, Window(8, 1, 4, 3), 64 * 192 * 65523),
    "pool44": _pooled("add", "avg_pool1d", {"N": 64, "C": 128, "W": 65536}, Window(8, 1, 4), 64 * 128 * 65537),
    "pool46": _pooled(
        "add", "avg_pool3d", {"N": 16, "C": 32, "D": 128, "H": 128, "W": 256}, Window(3, 2, 1), 16 * 32 * 64 * 64 * 128
    ),
    "l1norm38": one_nest(
        cases.along(cases.l1_norm, columns=False),
        {"A": 32768, "J": 65535},
        lambda _, X: X / X.abs().mean(1, keepdim=True),
        32768 * 65535,
        configs=_ODD,
    ),
    "instance34": normed((N, C), _INSTANCES, lambda torch, X: torch.nn.functional.instance_norm(X)),
    "frobenius37": NestCase(
        _frobenius(_INSTANCES),
        (_IMAGES,),
        _INSTANCES,
        lambda torch, X: X / torch.norm(X),
        112 * (1 << 24),
        unit=1e-5,
        close=1e-3,
    ),
    "layer40": normed((N,), _LAYERS, lambda torch, X: torch.nn.functional.layer_norm(X, X.shape[1:])),
    "product90": one_nest(cases.scan("mul"), _SQUARE, lambda _, X: X.cumprod(1), 1 << 30, configs=_IN_ORDER[:2]),
    "exclusive92": one_nest(
        cases.scan("add", exclusive=True),
        _SQUARE,
        lambda torch, X: torch.cat((torch.zeros_like(X[:, :1]), X[:, :-1].cumsum(1)), 1),
        1 << 30,
        unit=256.0,
        configs=_BACK,
    ),
    "depthwise85": _depthwise({"N": 32, "C": 128, "H": 128, "W": 256}, 32 * 128 * 126 * 250, Window(3), Window(7)),
    "depthwise83": _depthwise({"N": 64, "C": 8, "H": 512, "W": 512}, 64 * 8 * 510 * 512, Window(3), Window(1)),
    "huber96": NestCase(
        _loss(cases.smooth_l1),
        _pairs(),
        _SQUARE,
        lambda torch, X, Z: torch.nn.functional.smooth_l1_loss(X, Z).view(1),
        1,
    ),
    "logsoftmax24": one_nest(
        cases.along(cases.log_softmax, columns=False),
        {"A": 4096, "J": 393216},
        lambda torch, X: torch.log_softmax(X, 1),
        4096 * 393216,
        configs=_LONG[:1],
        rows=softmax.log_softmax_f32,
    ),
}
