"""Generates load.py of a delivery, which launches the kernel, or interprets it on targets without a runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from argus.core.ir import Kernel, Program
from argus.search.certificates.file_claims import small_sizes
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.traced import Traced, admits, read_names, shape_at, written_names
from argus.search.problems.workload import size_sources

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
_FAMILY_ON_GPU = '''def main() -> None:
    """Compare results on inputs by the rules of {problem} with its reference."""
    problem = family_problem("{problem}", "{target}")
    rules, generator = problem.inputs_of("{name}"), np.random.default_rng(0)
    drawn = rules.arrays(EXTENTS, AT, rules.kinds[0], generator)
    given = {{name: torch.from_numpy(each).to("cuda", getattr(torch, TENSORS[name])) for name, each in drawn.items()}}
    inputs = {{name: given[name].double().cpu().numpy() for name in INPUTS}}
    launch(*given.values())
    expected = reference_outputs(problem.answer(inputs), {{name: EXTENTS[name] for name in OUTPUTS}})
    for name, array in expected.items():
        error = np.abs(given[name].double().cpu().numpy() - array).max() / np.abs(array).max()
        sys.stdout.write(f"{{name}} {{array.shape}}: largest error {{error:.2e}} of the largest element\\n")
'''
_FAMILY = '''def main() -> None:
    """Compare results on inputs by the rules of {problem} with its reference."""
    problem = family_problem("{problem}", "{target}")
    rules, generator = problem.inputs_of("{name}"), np.random.default_rng(0)
    kinds = {{name: np.dtype(getattr(ml_dtypes, kind, kind)) for name, kind in TENSORS.items()}}
    drawn = rules.arrays(EXTENTS, AT, rules.kinds[0], generator)
    given = {{name: each.astype(kinds[name]) for name, each in drawn.items()}}
    inputs = {{name: given[name].astype(float) for name in INPUTS}}
    launch(*given.values())
    expected = reference_outputs(problem.answer(inputs), {{name: EXTENTS[name] for name in OUTPUTS}})
    for name, array in expected.items():
        error = np.abs(given[name].astype(float) - array).max() / np.abs(array).max()
        sys.stdout.write(f"{{NAME}}, interpreted, as there is no runtime for {target}: {{name}} {{array.shape}}, ")
        sys.stdout.write(f"largest error {{error:.2e}} of the largest element\\n")
'''
_NAMES = """INPUTS = {inputs}
OUTPUTS = {outputs}
"""
_ANSWERS = "from argus.runtime.sandbox.user_reference import call_reference, reference_outputs\n"
_OF_FILE = {
    "@NAMES@": _NAMES,
    "@STANDARD@": "import runpy\n",
    "@NUMPY@": "import numpy as np\n",
    "@ANSWERS@": _ANSWERS,
}
_OF_FAMILY = {
    "@NAMES@": _NAMES + 'AT = @AT@\n"""Sizes of these shapes."""\n',
    "@NUMPY@": "import numpy as np\n",
    "@ANSWERS@": "from argus.runtime.sandbox.user_reference import reference_outputs\n"
    "from argus.search.problems.families.problem import family_problem\n",
}
_PROGRAM_ON_GPU = {
    "from argus.runtime.gpu.launch import LoadedKernel, load\n": (
        "from argus.runtime.programs import LoadedProgram, load_program\n"
    ),
    "LoadedKernel": "LoadedProgram",
    "return load(DESCRIPTION)": "return load_program(DESCRIPTION)",
    "SIZES = {sizes}\n": 'SPACES = @SPACES@\n"""Workspaces, with the types of their elements."""\nSIZES = {sizes}\n',
    "        loaded(torch.cuda.current_device()).bind(given, sizes, stream)()\n": (
        "        program = loaded(torch.cuda.current_device()).prepare(sizes)\n"
        "        for each in program.workspaces:\n"
        "            kind = getattr(torch, SPACES[each.name])\n"
        "            given[each.name] = torch.empty(each.shape, dtype=kind, device=device)\n"
        "        program.bind(given, stream)()\n"
    ),
}
_PROGRAM = {"Kernel": "Program"}
"""What differs in the scripts of programs."""
_SMALL = {"M": 48, "N": 64, "K": 72}


def loader(kernel: Kernel, stem: str, sizes: Mapping[str, int]) -> str:
    """The script of a GEMM. stem: of the description's file name. sizes: of the problem by name."""
    cuda = kernel.target.name == "sm_90a"
    used = sizes if cuda else {name: min(_SMALL.get(name, 64), size) for name, size in sizes.items()}
    template = _assembled(_TORCH, _PRODUCT_ON_GPU, {}) if cuda else _assembled(_NUMPY, _PRODUCT, {})
    return _filled(template, kernel, stem, used)


def file_loader(kernel: Kernel, stem: str, sizes: Mapping[str, int], problem: str) -> str:
    """The script of a user's kernel. problem: name of the delivered file with its reference."""
    cuda = kernel.target.name == "sm_90a"
    used = sizes if cuda else small_sizes(kernel, sizes)
    template = _assembled(_TORCH, _FILE_ON_GPU, _OF_FILE) if cuda else _assembled(_NUMPY, _FILE, _OF_FILE)
    return _filled(template, kernel, stem, used, problem)


def family_loader(traced: Traced, stem: str, problem: FamilyProblem) -> str:
    """The script of a kernel or program of a family, whose name has the reference and the rules for inputs."""
    cuda, rules = traced.target.name == "sm_90a", problem.inputs_of(traced.name)
    used = problem.sizes_of(traced.name)
    if not cuda:
        drawn = None if rules.small is None else rules.small(np.random.default_rng(0))
        used = small_sizes(traced, used) if drawn is None else next(each for each in drawn if admits(traced, each))
    template = _assembled(_TORCH, _FAMILY_ON_GPU, _OF_FAMILY) if cuda else _assembled(_NUMPY, _FAMILY, _OF_FAMILY)
    if isinstance(traced, Program):
        for old, new in (_PROGRAM_ON_GPU if cuda else _PROGRAM).items():
            template = template.replace(old, new)
        spaces = ((each.name, f'"{_TYPES[each.dtype.name]}"') for each in traced.workspaces)
        template = template.replace("@SPACES@", _literal(spaces).replace("{", "{{").replace("}", "}}"))
    at = _literal((name, str(extent)) for name, extent in used.items())
    return _filled(template, traced, stem, used, str(problem)).replace("@AT@", at)


def _assembled(template: str, main: str, more: Mapping[str, str]) -> str:
    parts = {"@MAIN@": main, "@NAMES@": "", "@STANDARD@": "", "@NUMPY@": "", "@ANSWERS@": "", **more}
    for mark, part in parts.items():
        template = template.replace(mark, part)
    return template


def _filled(template: str, kernel: Traced, stem: str, sizes: Mapping[str, int], problem: str = "") -> str:
    types = {buffer.name: _TYPES[buffer.dtype.name] for buffer in kernel.parameters}
    extents = {buffer.name: shape_at(buffer, kernel, sizes) for buffer in kernel.parameters}
    return template.format(
        stem=stem,
        target=kernel.target.name,
        order=", ".join(types),
        tensors=_literal((name, f'"{kind}"') for name, kind in types.items()),
        sizes=_literal((name, f'("{tensor}", {axis})') for name, (tensor, axis) in size_sources(kernel).items()),
        extents=_literal((name, str(shape)) for name, shape in extents.items()),
        problem=problem,
        inputs=_tuple(read_names(kernel)),
        outputs=_tuple(written_names(kernel)),
        name=kernel.name,
    )


def _literal(entries: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in entries) + "}"


def _tuple(names: Iterable[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"({', '.join(quoted)}{',' if len(quoted) == 1 else ''})"
