from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.search.certificates.delivery import deliver
from argus.search.certificates.load_script import loader
from argus.search.designs.usual import usual_design
from argus.search.problems.problem import gemm_of
from tests.search.certificates.deliveries import DESIGNS, claimed, delivery, found

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deliveries")


@pytest.mark.share(3)
def test_no_design_no_delivery(tmp_path: Path) -> None:
    with pytest.raises(ArgusError) as refused:
        deliver(evolve(found("gfx942"), best=None), tmp_path / "out")

    assert refused.value.diagnostic.code == "E932"
    assert not (tmp_path / "out").exists()


@pytest.mark.share(8)
@pytest.mark.parametrize(("settled", "time", "baseline"), [({}, 1.0, 3.0), ({"a": 9.0}, 1.0, 3.0), ("both", 2.0, 2.5)])
def test_times_of_a_last_round_are_those_of_the_certificate(
    settled: dict[str, float] | str, time: float, baseline: float, tmp_path: Path
) -> None:
    """Never beside single ones: a lucky measurement of the best, and of what it is compared with, are both replaced."""
    run = found("gfx942")
    assert run.best is not None
    usual, _ = usual_design(run.problem)
    assert usual != run.best.name
    light = run.problem.bounds.light
    single = evolve(run.best, reward="measured", microseconds=1.0 * light)
    other = evolve(single, name=usual, microseconds=3.0 * light)
    medians = {run.best.name: 2.0 * light, usual: 2.5 * light} if isinstance(settled, str) else settled
    best = evolve(single, microseconds=medians.get(single.name, single.microseconds))
    deliver(evolve(run, best=best, judged=(single, other), settled=medians), tmp_path / "out", device="a GPU")

    said = claimed(tmp_path / "out")
    assert said["time"]["microseconds"] == pytest.approx(time * light)
    assert said["time"].get("median", False) is isinstance(settled, str)
    assert said["baseline"]["microseconds"] == pytest.approx(baseline * light)


@pytest.mark.share(3)
def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(ArgusError) as refused:
        deliver(found("gfx942"), tmp_path / "file" / "out")

    assert refused.value.diagnostic.code == "E302"


@pytest.mark.share(8)
@pytest.mark.parametrize("target", DESIGNS)
def test_no_path_of_this_machine_is_delivered(target: str, tmp_path: Path, home: Path) -> None:
    folder = delivery(target, tmp_path / "out", home)

    for path in folder.iterdir():
        data = path.read_bytes()
        assert str(ROOT).encode() not in data, path.name
        assert str(home).encode() not in data, path.name


@pytest.mark.share(48, among="certificates")
@pytest.mark.parametrize("target", DESIGNS)
def test_the_loader_keeps_the_rules(target: str, tmp_path: Path, home: Path) -> None:
    folder = delivery(target, tmp_path / "out", home)

    assert complaints(folder / "load.py") == ""


def complaints(script: Path) -> str:
    """Ruff's output for a file, with this project's rules except those that a single script cannot satisfy."""
    found = ""
    for command in (("check", "--extend-ignore", "INP001"), ("format", "--diff")):
        done = subprocess.run(  # noqa: S603 reason: this environment's ruff
            (sys.executable, "-m", "ruff", *command, "--config", str(ROOT / "pyproject.toml"), str(script)),
            capture_output=True,
            text=True,
            check=False,
        )
        found += done.stdout if done.returncode else ""
    return found


@pytest.mark.parametrize(
    ("target", "design"),
    [
        ("gfx942", "cdna3staged_bm128_bn128_mfma16_run8_vector8_swizzle_guarded_group4_unroll4"),
        ("sm_90a", "hopper_bn192_bk128_stages2_group16_cluster2_whole_noflight_norealloc_nobox"),
    ],
)
def test_the_loader_of_a_long_name_keeps_them_too(target: str, design: str, tmp_path: Path) -> None:
    asked = gemm_of("gemm:262144x262144x262144:bf16", target)
    (tmp_path / "load.py").write_text(loader(asked.kernel(design), design, dict(asked.sizes)), encoding="utf-8")

    assert complaints(tmp_path / "load.py") == ""


def printed(script: Path) -> str:
    """The output of a delivered script, run from another folder."""
    done = subprocess.run(  # noqa: S603 reason: the script that is tested
        (sys.executable, str(script)),
        cwd=script.parent.parent,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.share(48, among="certificates")
def test_without_a_runner_the_loader_interprets_and_says_so(tmp_path: Path, home: Path) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)

    shown = printed(folder / "load.py")

    assert shown.startswith("gemm_cdna3, interpreted, as there is no runtime for gfx942: (48, 64), ")
    assert float(shown.split()[-5]) < 2.0**-7


class Device(NamedTuple):
    type: str


class Tensor:
    """A stand-in for a torch tensor with the attributes that a loader uses."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "bf16", device: str = "cuda") -> None:
        self.shape, self.dtype = shape, dtype
        self.device = Device(device)


class Scope:
    def __init__(self, _device: object) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_the_loader_launches_on_the_current_stream(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = delivery("sm_90a", tmp_path / "out", home)
    torch = ModuleType("torch")
    stream = type("Stream", (), {"cuda_stream": 77})
    cuda = type("Cuda", (), {"device": Scope, "current_stream": stream, "current_device": staticmethod(int)})
    torch.__dict__.update({"bfloat16": "bf16", "cuda": cuda, "Tensor": Tensor})
    monkeypatch.setitem(sys.modules, "torch", torch)
    script: dict[str, object] = {"__file__": str(folder / "load.py"), "__name__": "loader"}
    exec(compile((folder / "load.py").read_text(encoding="utf-8"), "load.py", "exec"), script)  # noqa: S102 reason: the script that is tested
    bound: list[tuple[list[str], dict[str, int], int]] = []

    class Kernel:
        def bind(self, tensors: dict[str, Tensor], sizes: dict[str, int], stream: int) -> object:
            bound.append((list(tensors), sizes, stream))
            return lambda: None

    def loaded(_device: int) -> Kernel:
        return Kernel()

    script["loaded"] = loaded
    launch = script["launch"]
    assert callable(launch)
    launch(Tensor((64, 32)), Tensor((48, 32)), Tensor((64, 48)))

    assert bound == [(["A", "B", "C"], {"M": 64, "N": 48, "K": 32}, 77)]
    with pytest.raises(ValueError, match="A: expected bfloat16 on one CUDA device"):
        launch(Tensor((64, 32), device="cpu"), Tensor((48, 32)), Tensor((64, 48)))
    assert Path(str(script["DESCRIPTION"])) == folder / claimed(folder)["files"]["description"]["name"]
