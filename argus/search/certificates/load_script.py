"""Generates load.py of a delivery, which launches the kernel, or interprets it on targets without a runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from argus.core.ir import Kernel
from argus.interp.memory.loading import inputs, outputs
from argus.search.certificates.file_claims import small_sizes
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.workload import shape_of, size_sources

_TYPES = {
    "f32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "i32": "int32",
    "i64": "int64",
    "i8": "int8",
    "e4m3": "float8_e4m3fn",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
}
_TORCH = '''"""Launch a kernel for sm_90a on CUDA tensors of PyTorch.

    from load import launch
    launch({order})

Argus proved the claims in certificate.json; `argus certify` on this folder checks them. Needs torch and argus[sm90a].
"""

from __future__ import annotations

@STANDARD@import sys
from functools import cache
from pathlib import Path

@NUMPY@import torch

from argus.runtime.gpu.launch import LoadedKernel, load
@ANSWERS@
NAME = "{stem}"
DESCRIPTION = Path(__file__).with_name(f"{{NAME}}.json")
TENSORS = {tensors}
"""Parameters in order, with the types of their elements."""
SIZES = {sizes}
"""The source of each size: a tensor and its axis."""
EXTENTS = {extents}
"""Shapes of the tensors that it was tuned for."""
@NAMES@

@cache
def loaded(_device: int) -> LoadedKernel:
    """Load the kernel into the context of the current device."""
    return load(DESCRIPTION)


def launch(*tensors: torch.Tensor) -> None:
    """Launch the kernel on the current stream. tensors: {order}, row-major, on one device.

    Raises ValueError for other tensors, ArgusError for sizes that the proof does not cover.
    """
    given = dict(zip(TENSORS, tensors, strict=True))
    device = tensors[0].device
    for name, tensor in given.items():
        if tensor.device != device or device.type != "cuda" or tensor.dtype != getattr(torch, TENSORS[name]):
            wanted = f"{{TENSORS[name]}} on one CUDA device"
            message = f"{{name}}: expected {{wanted}}, found {{tensor.dtype}} on {{tensor.device}}"
            raise ValueError(message)
    sizes = {{size: given[name].shape[axis] for size, (name, axis) in SIZES.items()}}
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream().cuda_stream
        loaded(torch.cuda.current_device()).bind(given, sizes, stream)()


@MAIN@

if __name__ == "__main__":
    main()
'''
_NUMPY = '''"""Run a kernel for {target} in the interpreter of Argus on NumPy arrays.

    from load import launch
    launch({order})

This version of Argus has no runtime for {target}: the code object is next to this file, its launch description in the
JSON file of the same name, and this script interprets the kernel with NumPy. Argus proved the claims in
certificate.json; `argus certify` on this folder checks them.
"""

from __future__ import annotations

import json
@STANDARD@import sys
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np

from argus.core.ir import Kernel
from argus.core.serde import read
@ANSWERS@from argus.verifier.api import interpret

NAME = "{stem}"
TENSORS = {tensors}
"""Parameters in order, with the types of their elements."""
EXTENTS = {extents}
"""Small shapes for the interpreter."""
@NAMES@

@cache
def loaded() -> Kernel:
    """Read the kernel from kernel.json."""
    (found,) = read(json.loads(Path(__file__).with_name("kernel.json").read_text(encoding="utf-8")))
    if not isinstance(found, Kernel):
        message = "kernel.json contains no kernel"
        raise TypeError(message)
    return found


def launch(*arrays: np.ndarray) -> None:
    """Interpret the kernel. arrays: {order}; outputs are written in place.

    Raises ArgusError for arrays that the proof does not cover.
    """
    given = dict(zip(TENSORS, arrays, strict=True))
    for name, made in interpret(loaded(), *arrays, tags=False).items():
        given[name][...] = made


@MAIN@

if __name__ == "__main__":
    main()
'''
_PRODUCT_ON_GPU = '''def main() -> None:
    """Compare one product of random matrices with torch's in float32."""
    kinds = {{name: getattr(torch, kind) for name, kind in TENSORS.items()}}
    left, right, out = (torch.randn(EXTENTS[name], device="cuda").to(kind) for name, kind in kinds.items())
    launch(left, right, out)
    expected = left.float() @ right.float().T
    error = (out.float() - expected).abs().max() / expected.abs().max()
    sys.stdout.write(f"{{tuple(out.shape)}}: largest error {{float(error):.2e}} of the largest element\\n")
'''
_PRODUCT = '''def main() -> None:
    """Compare one product of random matrices with NumPy's."""
    kinds = {{name: np.dtype(getattr(ml_dtypes, kind, kind)) for name, kind in TENSORS.items()}}
    generator = np.random.default_rng(0)
    left, right, out = (generator.standard_normal(EXTENTS[name]).astype(kind) for name, kind in kinds.items())
    launch(left, right, out)
    expected = left.astype(float) @ right.astype(float).T
    error = np.abs(out.astype(float) - expected).max() / np.abs(expected).max()
    sys.stdout.write(f"{{NAME}}, interpreted, as there is no runtime for {target}: {{out.shape}}, ")
    sys.stdout.write(f"largest error {{error:.2e}} of the largest element\\n")
'''
_FILE_ON_GPU = '''def main() -> None:
    """Compare results on random inputs with the reference of {problem}."""
    reference = runpy.run_path(str(Path(__file__).with_name("{problem}")))["reference"]
    generator = np.random.default_rng(0)
    drawn = {{name: torch.from_numpy(generator.standard_normal(shape)) for name, shape in EXTENTS.items()}}
    given = {{name: each.to("cuda", getattr(torch, TENSORS[name])) for name, each in drawn.items()}}
    inputs = {{name: given[name].double().cpu().numpy() for name in INPUTS}}
    launch(*given.values())
    expected = reference_outputs(call_reference(reference, inputs), {{name: EXTENTS[name] for name in OUTPUTS}})
    for name, array in expected.items():
        error = np.abs(given[name].double().cpu().numpy() - array).max() / np.abs(array).max()
        sys.stdout.write(f"{{name}} {{array.shape}}: largest error {{error:.2e}} of the largest element\\n")
'''
_FILE = '''def main() -> None:
    """Compare results on random inputs with the reference of {problem}."""
    reference = runpy.run_path(str(Path(__file__).with_name("{problem}")))["reference"]
    generator = np.random.default_rng(0)
    kinds = {{name: np.dtype(getattr(ml_dtypes, kind, kind)) for name, kind in TENSORS.items()}}
    given = {{name: generator.standard_normal(shape).astype(kinds[name]) for name, shape in EXTENTS.items()}}
    inputs = {{name: given[name].astype(float) for name in INPUTS}}
    launch(*given.values())
    expected = reference_outputs(call_reference(reference, inputs), {{name: EXTENTS[name] for name in OUTPUTS}})
    for name, array in expected.items():
        error = np.abs(given[name].astype(float) - array).max() / np.abs(array).max()
        sys.stdout.write(f"{{NAME}}, interpreted, as there is no runtime for {target}: {{name}} {{array.shape}}, ")
        sys.stdout.write(f"largest error {{error:.2e}} of the largest element\\n")
'''
_NAMES = """INPUTS = {inputs}
OUTPUTS = {outputs}
"""
_SMALL = {"M": 48, "N": 64, "K": 72}


def loader(kernel: Kernel, stem: str, sizes: Mapping[str, int]) -> str:
    """The script of a GEMM. stem: of the description's file name. sizes: of the problem by name."""
    cuda = kernel.target.name == "sm_90a"
    used = sizes if cuda else {name: min(_SMALL.get(name, 64), size) for name, size in sizes.items()}
    template = _assembled(_TORCH, _PRODUCT_ON_GPU) if cuda else _assembled(_NUMPY, _PRODUCT)
    return _filled(template, kernel, stem, used)


def file_loader(kernel: Kernel, stem: str, sizes: Mapping[str, int], problem: str) -> str:
    """The script of a user's kernel. problem: name of the delivered file with its reference."""
    cuda = kernel.target.name == "sm_90a"
    used = sizes if cuda else small_sizes(kernel, sizes)
    template = _assembled(_TORCH, _FILE_ON_GPU, of_file=True) if cuda else _assembled(_NUMPY, _FILE, of_file=True)
    return _filled(template, kernel, stem, used, problem)


def family_loader(kernel: Kernel, stem: str, problem: FamilyProblem) -> str:
    """The script of a kernel of a family, whose name has the reference."""
    cuda = kernel.target.name == "sm_90a"
    used = problem.sizes if cuda else small_sizes(kernel, problem.sizes)
    template = _assembled(_TORCH, _FILE_ON_GPU, of_file=True) if cuda else _assembled(_NUMPY, _FILE, of_file=True)
    for old, new in _OF_FAMILY.items():
        template = template.replace(old, new)
    constants = _literal((name, repr(value)) for name, value in problem.inputs_of(kernel).constants.items())
    return _filled(template, kernel, stem, used, str(problem)).replace("@CONSTANTS@", constants)


_OF_FAMILY = {
    "import runpy\n": "",
    'reference = runpy.run_path(str(Path(__file__).with_name("{problem}")))["reference"]': (
        'reference = family_problem("{problem}", "{target}").reference'
    ),
    "from argus.runtime.sandbox.user_reference import call_reference, reference_outputs\n": (
        "from argus.runtime.sandbox.user_reference import call_reference, reference_outputs\n"
        "from argus.search.problems.families.problem import family_problem\n"
    ),
    "OUTPUTS = {outputs}\n": 'OUTPUTS = {outputs}\nCONSTANTS = @CONSTANTS@\n"""Inputs that are numbers."""\n',
    "    inputs = {{name:": (
        "    for name, value in CONSTANTS.items():\n        given[name][...] = value\n    inputs = {{name:"
    ),
}
"""What differs in the script of a user's file."""


def _assembled(template: str, main: str, *, of_file: bool = False) -> str:
    parts = {
        "@MAIN@": main,
        "@NAMES@": _NAMES if of_file else "",
        "@STANDARD@": "import runpy\n" if of_file else "",
        "@NUMPY@": "import numpy as np\n" if of_file else "",
        "@ANSWERS@": "from argus.runtime.sandbox.user_reference import call_reference, reference_outputs\n"
        if of_file
        else "",
    }
    for mark, part in parts.items():
        template = template.replace(mark, part)
    return template


def _filled(template: str, kernel: Kernel, stem: str, sizes: Mapping[str, int], problem: str = "") -> str:
    types = {buffer.name: _TYPES[buffer.dtype.name] for buffer in kernel.parameters}
    extents = {buffer.name: shape_of(buffer, kernel, sizes) for buffer in kernel.parameters}
    return template.format(
        stem=stem,
        target=kernel.target.name,
        order=", ".join(types),
        tensors=_literal((name, f'"{kind}"') for name, kind in types.items()),
        sizes=_literal((name, f'("{tensor}", {axis})') for name, (tensor, axis) in size_sources(kernel).items()),
        extents=_literal((name, str(shape)) for name, shape in extents.items()),
        problem=problem,
        inputs=_tuple(each.name for each in inputs(kernel)),
        outputs=_tuple(each.name for each in outputs(kernel)),
    )


def _literal(entries: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in entries) + "}"


def _tuple(names: Iterable[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"({', '.join(quoted)}{',' if len(quoted) == 1 else ''})"
