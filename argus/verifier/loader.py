"""Loads a kernel file and lists the kernels it exports; every failure is one diagnostic."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import NoReturn

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.dsl.kernel import Template
from argus.core.dsl.programs import ProgramTemplate
from argus.core.dsl.source_location import span_of_function
from argus.core.ir import Kernel, Program
from argus.core.span import NOWHERE, Frame, Span
from argus.report.sources import unreadable
from argus.verifier.limits import HardExit, TooLongError, exits_raised, line_in, load_limit, top_of

SECONDS = 5.0
"""The default time limit for loading a file, and for tracing each of its kernels, as `load_limit` counts it."""


@frozen
class Exported:
    """One kernel of a file. name: its name in reports. config: which instance, where `source` is a family, or the
    program is one.

    program, launch: the program that launches it and the number of that launch, where a program does.
    """

    name: str
    source: Template | Kernel
    config: str | None = None
    program: Program | None = None
    launch: int = 0

    def trace(self, *, seconds: float = SECONDS) -> Kernel:
        """The traced kernel.

        Raises:
            ArgusError: E1xx or E2xx for errors in the kernel, E006 if tracing takes longer than `seconds`.
        """
        if isinstance(self.source, Kernel):
            return _renamed(self.source, self.name)
        with _tracing(f"kernel `{self.name}`", _place_of(self.source.function, self.source.name), seconds):
            return _renamed(self.source.trace(self.config), self.name)


@contextmanager
def _tracing(what: str, span: Span, seconds: float) -> Generator[None]:
    """Raises ArgusError E006 for a body that goes on for longer, E103 for one that ends the program."""
    with load_limit(seconds, f"tracing {what}", span):
        try:
            with exits_raised():
                yield
        except SystemExit as exit_:
            raise ArgusError(_exit_diagnostic("E103", what, exit_, span)) from exit_


def _renamed(kernel: Kernel, name: str) -> Kernel:
    return kernel if kernel.name == name else evolve(kernel, name=name)


def text_of(what: str) -> tuple[Path, str, str]:
    """The path and text of the file that `FILE` or `FILE:KERNEL` names, and the kernel's name or "".

    Raises ArgusError (E001) if there is no such file, or it is no UTF-8 text.
    """
    file, wanted = _split(what)
    path = _locate(file)[0]
    try:
        return path, path.read_text(encoding="utf-8"), wanted or ""
    except (OSError, UnicodeDecodeError) as problem:
        _refuse("E001", f"`{file}` cannot be read: {unreadable(problem)}", "make it readable, or name another file")


def locate_file(what: str) -> Path:
    """The path of the file that `FILE` or `FILE:KERNEL` names. Raises ArgusError (E001) if there is none."""
    return _locate(_split(what)[0])[0]


def load(what: str, *, seconds: float = SECONDS, beside: Path | None = None) -> tuple[Exported, ...]:
    """The kernels that `FILE` or `FILE:KERNEL` names, in the order in which the file defines them.

    FILE is a path, or the dotted name of a module. The name of a family selects all its instances, which can also be
    named one by one (`gemm_cdna3`). The name of a program selects all kernels that it launches, which can also be named
    one by one (`gemm_split_partial`); such a kernel is not exported on its own unless it is a family. Names imported
    from another module are not exported. The file runs in this process, under a private module name, with its folder
    first on the path.
    beside: a folder to import from as if it were the file's own, where the file is a copy of one there.
    The time limit uses SIGALRM and applies on the main thread of a POSIX system only.

    Raises:
        ArgusError: E001 if there is no such file, E002 if it does not parse, E003 if it raises, E004 if it
            exports no kernel, E005 if none has the name, E006 if it takes longer than `seconds`, or a program does to
            trace, E1xx or E2xx for errors in a program.
    """
    return load_with_names(what, seconds=seconds, beside=beside)[0]


def load_with_names(
    what: str, *, seconds: float = SECONDS, beside: Path | None = None
) -> tuple[tuple[Exported, ...], Mapping[str, object]]:
    """Like `load`, and also returns all module-level names of the file. Raises ArgusError like `load`."""
    file, wanted = _split(what)
    path, module_name = _locate(file)
    folder = nullcontext() if beside is None else _folder_on_path(beside)
    with load_limit(seconds, f"loading `{file}`", top_of(str(path))), folder:
        module = _run(path, file, module_name)
    exported = tuple(_exported(module, seconds))
    if not exported:
        _refuse(
            "E004",
            f"`{file}` exports no kernel: none of its module-level names is one",
            "decorate a function with `@kernel(target=gfx942, threads=256)`; names that start with `_` do not count",
        )
    return exported if wanted is None else _named(exported, wanted, file), vars(module)


def load_names(file: str, *, seconds: float = SECONDS) -> Mapping[str, object]:
    """All module-level names of a file, which need not export a kernel. Raises ArgusError like `load`, but not E004."""
    path, module_name = _locate(file)
    with load_limit(seconds, f"loading `{file}`", top_of(str(path))):
        return vars(_run(path, file, module_name))


# -- finding the file ----------------------------------------------------------------------------------------


def _split(what: str) -> tuple[str, str | None]:
    """FILE and KERNEL; a colon in the name of an existing file is part of it."""
    file, colon, name = what.rpartition(":")
    return (file, name) if colon and file and not Path(what).exists() else (what, None)


def _locate(file: str) -> tuple[Path, str | None]:
    """The path of a regular file and, if it was named as a module, that module's name."""
    path = Path(os.path.abspath(file))  # noqa: PTH100 reason: `..` is removed, links are kept as the user named them
    if not path.exists() and _is_dotted(file):
        return _module_path(file), file
    if path.is_file():
        return path, None
    if path.is_dir():
        _refuse("E001", f"`{file}` is a folder, expected a Python file", "name a file in it")
    if path.exists():
        _refuse("E001", f"`{file}` is not a regular file", "name a Python file")
    _refuse("E001", f"there is no file `{file}`", _similar(Path(file)))


def _is_dotted(file: str) -> bool:
    parts = file.split(".")
    return len(parts) > 1 and parts[-1] != "py" and all(part.isidentifier() for part in parts)


def _module_path(name: str) -> Path:
    with _folder_on_path(Path.cwd()):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        _refuse("E001", f"there is neither a file nor a module `{name}`", "name a Python file by its path")
    return Path(spec.origin)


def _similar(path: Path) -> str:
    try:
        files = sorted(each.name for each in path.parent.iterdir() if each.suffix == ".py")
    except OSError:
        return "check the folder's name"
    nearest = get_close_matches(path.name, files, n=1, cutoff=0.7)
    return f"did you mean `{path.with_name(nearest[0])}`?" if nearest else "check its path"


# -- running it ----------------------------------------------------------------------------------------------


def _run(path: Path, shown: str, module_name: str | None) -> ModuleType:
    code = _compiled(path, shown)
    name = f"_argus_file_{sha256(bytes(path)).hexdigest()[:16]}"
    with _folder_on_path(path.parent if module_name is None else Path.cwd()), _exceptions_reported(path, shown):
        if module_name is not None:
            return importlib.import_module(module_name)
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        try:
            with exits_raised():
                exec(code, module.__dict__)  # noqa: S102 reason: running the user's file is the task
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _compiled(path: Path, shown: str) -> CodeType:
    try:
        text = path.read_bytes()
    except OSError as problem:
        _refuse("E001", f"`{shown}` cannot be read: {problem.strerror}", "make it readable, or name another file")
    try:
        return compile(text, str(path), "exec", dont_inherit=True)
    except SyntaxError as problem:
        where = _syntax_place(path, problem)
        message = f"`{shown}` does not parse: {problem.msg}"
        raise ArgusError(
            Diagnostic("E002", "error", message, Label(where, "here" if where.frames else ""), help=_PARSE_HELP)
        ) from problem
    except (ValueError, RecursionError, MemoryError) as problem:
        message = f"`{shown}` does not parse: {problem or type(problem).__name__}"
        raise ArgusError(Diagnostic("E002", "error", message, help=_PARSE_HELP)) from problem


_PARSE_HELP = f"fix it for Python {sys.version_info[0]}.{sys.version_info[1]}, which runs Argus here"


def _syntax_place(path: Path, problem: SyntaxError) -> Span:
    if not problem.lineno:
        return NOWHERE
    column = max(0, (problem.offset or 1) - 1)
    same_line = problem.end_lineno == problem.lineno and problem.end_offset
    end = (problem.end_offset or 1) - 1 if same_line else column + 1
    return Span((Frame(str(path), problem.lineno, column, max(end, column + 1), "<module>"),))


@contextmanager
def _folder_on_path(folder: Path) -> Generator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))


@contextmanager
def _exceptions_reported(path: Path, shown: str) -> Generator[None]:
    """Turn an exception from the file into a diagnostic at its own line; KeyboardInterrupt passes through."""
    try:
        yield
    except (ArgusError, KeyboardInterrupt, TooLongError):
        raise
    except SystemExit as problem:
        raise ArgusError(_exit_diagnostic("E003", f"`{shown}`", problem, top_of(str(path)))) from problem
    except BaseException as problem:
        message = f"`{shown}` raised {_described(problem)} while it was loaded"
        where = line_in(top_of(str(path)), problem.__traceback__)
        advice = "fix the line shown; a kernel file must load by itself"
        raise ArgusError(Diagnostic("E003", "error", message, Label(where, "raised here"), help=advice)) from problem


def _exit_diagnostic(code: str, subject: str, problem: SystemExit, within: Span) -> Diagnostic:
    where = line_in(within, problem.__traceback__)
    call = "os._exit" if isinstance(problem, HardExit) else "sys.exit"
    message = f"{subject} ended the program with `{call}({problem.code!r})`"
    advice = "remove the call: a kernel file must return to the loader"
    return Diagnostic(code, "error", message, Label(where, "exits here"), help=advice)


def _described(problem: BaseException) -> str:
    text = str(problem)
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


# -- what it exports -----------------------------------------------------------------------------------------


def _exported(module: ModuleType, seconds: float) -> Iterator[Exported]:
    launched = {
        name: tuple(_launched(name, value, seconds))
        for name, value in vars(module).items()
        if not name.startswith("_") and isinstance(value, ProgramTemplate) and not _imported(value, module)
    }
    places = {each.source.span for found in launched.values() for each in found if isinstance(each.source, Kernel)}
    seen: list[object] = []
    for name, value in vars(module).items():
        if name.startswith("_") or any(value is each for each in seen):
            continue
        if isinstance(value, Kernel):
            yield Exported(name, value)
        elif isinstance(value, Program):
            yield from _launches(name, value, None)
        elif name in launched:
            yield from launched[name]
        elif isinstance(value, Template) and not _imported(value, module):
            yield from _instances(name, value, places)
        else:
            continue
        seen.append(value)


def _instances(name: str, value: Template, launched: Collection[Span]) -> Iterator[Exported]:
    """The instances of a family; a kernel without instances, unless a program launches it."""
    code = getattr(value.function, "__code__", None)
    if value.configs or code is None or span_of_function(code) not in launched:
        for config in value.instances():
            yield Exported(name if config is None else f"{name}_{config}", value, config)


def _launched(name: str, value: ProgramTemplate, seconds: float) -> Iterator[Exported]:
    """The kernels of a program, one per launch, as specialised for that launch."""
    for config in value.instances():
        whole = name if config is None else f"{name}_{config}"
        with _tracing(f"program `{whole}`", _place_of(value.function, name), seconds):
            made = value.trace(config)
        yield from _launches(whole, made, config)


def _launches(name: str, program: Program, config: str | None) -> Iterator[Exported]:
    for number, launch in enumerate(program.launches):
        yield Exported(f"{name}_{launch.kernel.name}", launch.kernel, config, program, number)


def _imported(template: Template | ProgramTemplate, module: ModuleType) -> bool:
    """Whether the module that defines the function also binds this template.

    A template that the file makes from another module's function is the file's own.
    """
    home = sys.modules.get(getattr(template.function, "__module__", ""))
    return home is not None and home is not module and any(each is template for each in vars(home).values())


def _named(exported: Sequence[Exported], wanted: str, file: str) -> tuple[Exported, ...]:
    families = [each for each in exported if each.config and each.name == f"{wanted}_{each.config}"]
    launched = [(each, each.program.name) for each in exported if each.program is not None]
    families = families or [each for each, program in launched if program == wanted]
    families = families or [each for each, program in launched if program == f"{wanted}_{each.config}"]
    chosen = [each for each in exported if each.name == wanted] or families
    if chosen:
        return tuple(chosen)
    names = _names(exported)
    if not wanted:
        _refuse("E005", f"`{file}:` names no kernel after the colon", f"it exports {', '.join(names)}")
    nearest = get_close_matches(wanted, names, n=1, cutoff=0.5)
    advice = f"did you mean `{file}:{nearest[0]}`?" if nearest else "choose one of these names"
    _refuse("E005", f"`{file}` exports no kernel `{wanted}`, found {', '.join(f'`{each}`' for each in names)}", advice)


def _names(exported: Sequence[Exported]) -> tuple[str, ...]:
    """The valid names after the colon: kernels, families and their instances."""
    names: Mapping[str, None] = dict.fromkeys(
        name for each in exported for name in (each.name.removesuffix(f"_{each.config}"), each.name)
    )
    return tuple(names)


def _place_of(function: object, name: str) -> Span:
    code = getattr(function, "__code__", None)
    return NOWHERE if code is None else Span((Frame(code.co_filename, code.co_firstlineno, 0, 0, name),))


def _refuse(code: str, message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic(code, "error", message, help=advice))
