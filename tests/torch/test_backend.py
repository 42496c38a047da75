"""`torch.compile(backend="argus")` on the CPU: kernels are proved, the interpreter runs them, eager torch agrees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch.nn import functional

import argus
import argus.torch
from argus.core.diagnostic import ArgusError
from argus.torch import backend
from argus.torch.compiled import Compiled, ViewStep
from argus.torch.report import GraphEntry
from argus.torch.tables import contractions

F: Any = functional
T: Any = torch
Function = Callable[[Any], Any] | Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    T.compiler.reset()
    argus.torch.clear_report()
    yield
    T.compiler.reset()


def agrees(function: Function, *given: torch.Tensor, dynamic: bool = False, error: float = 1e-5) -> GraphEntry:
    """The report on the function's graph, once its result is eager torch's."""
    made, plain = T.compile(function, backend="argus", dynamic=dynamic), cast(Callable[..., Any], function)
    with torch.no_grad():
        found, wanted = made(*given), plain(*given)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    assert torch.allclose(found.double(), wanted.double(), atol=error, rtol=error)
    return argus.torch.report()[-1]


def _compiled(function: Callable[[Any], Any], **options: Any) -> Any:  # noqa: ANN401 reason: torch's
    return T.compile(function, backend="argus", **options)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


UNARY: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu,
    "leaky relu": F.leaky_relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "swish": lambda x: x * torch.sigmoid(x),
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "selu": F.selu,
    "elu": F.elu,
    "hardsigmoid": F.hardsigmoid,
    "softplus": F.softplus,
    "softsign": F.softsign,
    "hardtanh": F.hardtanh,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "new gelu": lambda x: 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0)))),
    "clamp": lambda x: torch.clamp(x, -0.5, 0.25),
    "upper triangle": lambda x: torch.triu(x, 1),
    "lower triangle": torch.tril,
    "transposed": lambda x: x.t() * 2,
    "parts": lambda x: torch.cat([x[:, 3:], x[:, ::2] + 1], 1),
    "reshaped": lambda x: x.reshape(4, 3, 40).transpose(0, 1).reshape(12, 40) - 1,
    "sums of a mask": lambda x: torch.cumsum(x * (x > 0), 1),
    "padded": lambda x: F.pad(F.relu(x), (1, 2), value=3.0),
}


@pytest.mark.share(48)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_a_matrix_is_one_proved_kernel(name: str) -> None:
    entry = agrees(UNARY[name], randn(12, 40))
    assert not entry.eager
    assert [each.verdict for each in entry.kernels] == ["proved"]


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_floats(dtype: torch.dtype) -> None:
    entry = agrees(lambda x, b: F.silu(x + b), randn(6, 24).to(dtype), randn(24).to(dtype), error=2e-2)
    assert not entry.eager


@pytest.mark.share(4)
@pytest.mark.parametrize("shapes", [((2, 3, 4, 8), (3, 1, 1)), ((4, 1, 6), (5, 1)), ((7, 13), (13,)), ((9,), ())])
def test_operands_broadcast(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    entry = agrees(lambda x, y: torch.div(x, y.abs() + 1) * y - x, *(randn(*shape) for shape in shapes))
    assert not entry.eager
    assert len(entry.kernels) == 1


def test_a_product_with_a_diagonal_matrix_has_no_sum() -> None:
    entry = agrees(lambda a, b: torch.diag(a) @ b, randn(8), randn(8, 260))
    assert len(entry.kernels) == 1
    assert "Y0[i0, i1]: f32 = mul(X0[i0], X1[i0, i1])" in entry.kernels[0].nests


def test_one_kernel_serves_all_sizes_of_a_dynamic_axis() -> None:
    made = _compiled(lambda x: F.relu(x[1:] * 2), dynamic=True)
    with torch.no_grad():
        for rows in (5, 9, 33):
            x = randn(rows, 16)
            assert torch.equal(made(x), F.relu(x[1:] * 2))
    (entry,) = argus.torch.report()
    assert not entry.eager


def test_what_is_not_covered_runs_in_eager_torch_and_is_said_once() -> None:
    x = randn(4, 6)

    def function(v: torch.Tensor) -> torch.Tensor:
        return torch.sort(v * 2, dim=1).values + 1

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        entry = agrees(function, x)
        T.compiler.reset()
        agrees(function, x)
    assert [each.operation for each in entry.eager] == ["aten.sort.default"]
    assert entry.eager[0].why == "the operation has no entry"
    assert len(entry.kernels) == 2
    ours = [str(each.message) for each in said if "argus" in str(each.message)]
    assert len(ours) == 1
    assert "aten.sort.default" in ours[0]


def test_operations_that_are_not_covered_can_be_errors() -> None:
    made = _compiled(lambda v: torch.sort(v).values, options={"fallback": "error"})
    with pytest.raises(Exception, match=r"1 operations are not covered: aten\.sort\.default") as raised:
        made(randn(5))
    assert _argus_error(raised.value).diagnostic.code == "E418"


@pytest.mark.filterwarnings("ignore:argus")
def test_integers_are_not_computed_in_f32() -> None:
    entry = agrees(lambda x, n: x * n, randn(4, 6), torch.arange(6))
    assert [each.operation for each in entry.eager] == ["aten.mul.Tensor"]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_an_extremum_of_numbers_leaves_out_what_is_none(name: str) -> None:
    x, y = randn(9), torch.arange(9.0) - 4
    x[2], y[5], x[7], y[7] = (torch.nan,) * 4
    found = T.compile(getattr(torch, name), backend="argus")(x, y)
    assert torch.equal(found.nan_to_num(99), getattr(torch, name)(x, y).nan_to_num(99))
    assert not argus.torch.report()[-1].eager


@pytest.mark.filterwarnings("ignore:argus")
def test_a_quotient_is_rounded_down_in_eager_torch() -> None:
    """f32 rounds 1 / 0.1 to 10, whose floor torch corrects to 9."""
    given = torch.arange(1.0, 9), torch.full((8,), 0.1)
    assert agrees(lambda x, y: torch.div(x, y, rounding_mode="floor"), *given, error=0).eager


EMPTY: dict[str, Callable[[Any], Any]] = {
    "all of them": lambda x: x * 2,
    "a sum of none": lambda x: x.sum(0) + 1,
    "joined": lambda x: torch.cat([x, x]),
    "joined with others": lambda x: torch.cat([x, torch.ones_like(x[:0]), x.new_ones(2, 3)]),
}


@pytest.mark.share(4)
@pytest.mark.filterwarnings("ignore:argus")
@pytest.mark.parametrize("name", EMPTY)
def test_tensors_without_elements(name: str) -> None:
    agrees(EMPTY[name], torch.zeros(0, 3))


def test_a_bias_that_does_not_count_may_be_no_number() -> None:
    x, y = randn(8, 8), torch.full((8, 8), torch.nan)
    assert not agrees(lambda x, y: torch.addmm(y, x, x, beta=0), x, y).eager


@pytest.mark.share(9)
@pytest.mark.parametrize("name", ["a mask read", "a mask made", "a mask of rows of a product"])
def test_truth_values(name: str) -> None:
    if name == "a mask of rows of a product":
        entry = agrees(lambda x, m: T.bmm(T.where(m[..., None], x, 0.0), x), randn(6, 8, 8), randn(6, 8) > 0)
        assert len(entry.kernels) == 1
    elif name == "a mask read":
        entry = agrees(lambda x, m: torch.where(m, x, -1.0), randn(4, 6), randn(4, 6) > 0)
    else:
        entry = agrees(lambda x, y: (x > y) | (x < -1), randn(4, 6), randn(6))
    assert not entry.eager


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "counted": lambda x, y: (x == y).sum(0),
    "chosen": lambda x, y: T.where(x < y, 1.0, 2.0),
    "a large number": lambda x, _: (x >= (1 << 24) + 1).any(0),
}


@pytest.mark.share(3)
@pytest.mark.filterwarnings("ignore:argus. eager torch runs:UserWarning")
@pytest.mark.parametrize("name", COMPARED)
def test_integers_that_f32_makes_equal_differ(name: str) -> None:
    x = torch.full((64,), 1 << 24)
    found = agrees(COMPARED[name], x, x + 1)
    assert found.kernels or found.eager


@pytest.mark.nightly
def test_places_of_maxima_in_one_pass() -> None:
    x = torch.randint(-3, 3, (5, 33000), generator=torch.Generator().manual_seed(0)).float()
    x[2, ::3] = x[4, ::3] = float("nan")
    (kernel,) = agrees(lambda v: T.argmax(v, 0), x).kernels
    assert kernel.name.startswith("places")


def test_another_option_is_refused() -> None:
    made = _compiled(lambda v: v + 1, options={"fall_back": "error"})
    with pytest.raises(Exception, match="there is no option") as raised:
        made(randn(5))
    assert _argus_error(raised.value).diagnostic.code == "E418"


def _argus_error(problem: BaseException | None) -> ArgusError:
    """The error that torch has wrapped in its own."""
    while problem is not None and not isinstance(problem, ArgusError):
        problem = getattr(problem, "inner_exception", None) or problem.__cause__
    assert isinstance(problem, ArgusError)
    return problem


@pytest.mark.share(3)
def test_a_large_product_is_that_of_argus_on_views_of_its_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contractions, "LARGE", 1 << 10)
    w = randn(24, 32)
    entry = agrees(lambda x, b: F.relu(F.linear(x, w, b)), randn(16, 32), randn(24))
    assert entry.operators == ("argus.matmul.default",)
    assert not entry.eager
    assert len(entry.kernels) == 1
    small = agrees(lambda x, y: x @ y, randn(4, 6), randn(6, 5))
    assert not small.operators
    assert len(small.kernels) == 1


NORMS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a norm of rows": (lambda x: F.layer_norm(x, (8, 8)), 1),
    "a norm of groups": (lambda x: F.group_norm(x, 2), 1),
    "a norm of instances": (F.instance_norm, 1),
    "a norm of one element": (lambda x: F.group_norm(x[:, :, 0, 0], 4), 3),
    "a norm of batches": (lambda x: F.batch_norm(x, None, None, training=True), 3),
    "a softmax": (lambda x: F.softmax(x, -1), 1),
    "a norm by the greatest": (lambda x: x / x.abs().amax((2, 3), True), 1),
}


@pytest.mark.share(12)
@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_fused_into_few_kernels(name: str) -> None:
    function, kernels = NORMS[name]
    entry = agrees(function, randn(2, 4, 8, 8))
    assert not entry.eager
    assert len(entry.kernels) <= kernels


@pytest.mark.filterwarnings("ignore:argus. eager torch runs")
def test_the_time_for_proofs_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    x = randn(4, 32)

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x + 0.7109375

    with torch.no_grad():
        assert torch.equal(_compiled(shifted, options={"proof_seconds": 0})(x), x + 0.7109375)
        entry = argus.torch.report()[-1]
        assert not entry.kernels
        assert "the 0 s for the whole proof are spent" in entry.failed[0]
        T.compiler.reset()
        assert torch.allclose(_compiled(shifted)(x), x + 0.7109375)
    assert [each.verdict for each in argus.torch.report()[-1].kernels] == ["proved"]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:argus. eager torch runs")
def test_a_batch_norm_in_training_of_any_batch_ends_in_four_kernels() -> None:
    made, plain = (torch.nn.BatchNorm1d(32) for _ in range(2))
    x = randn(16, 32)
    with torch.no_grad():
        assert torch.allclose(T.compile(made, backend="argus", dynamic=True)(x), plain(x), atol=1e-5)
    assert torch.allclose(made.running_var, plain.running_var, atol=1e-6)  # pyright: ignore[reportArgumentType]
    names = [each.name.partition("_")[0] for each in argus.torch.report()[-1].kernels]
    assert len(names) == 4, names  # the fourth counts the batches


@pytest.mark.share(3)
def test_a_view_of_views_is_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second call on by its shape and strides, of what the call computes then; a result may be one, too."""
    made: list[Compiled] = []
    real = backend.compiled

    def compiled(*given: Any) -> Compiled:  # noqa: ANN401 reason: torch's
        made.append(real(*given))
        return made[-1]

    monkeypatch.setattr(backend, "compiled", compiled)

    def heads(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = torch.relu(x).view(2, 16, 2, 3, 8).permute(2, 0, 3, 1, 4)
        return argus.matmul(parts[0], parts[1].transpose(-1, -2)), parts[1]

    run: Any = torch.compile(heads, backend=backend.argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    with torch.no_grad():
        for _ in range(3):
            x = randn(32, 48)
            for found, wanted in zip(run(x), heads(x), strict=True):
                assert found.shape == wanted.shape
                assert torch.allclose(found, wanted, atol=1e-5)
    assert [step.base for step in made[0].steps if isinstance(step, ViewStep)] == ["relu", "relu"]
