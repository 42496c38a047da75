"""Loading a kernel file: what it exports, or one diagnostic that says why it cannot be had."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import NoReturn

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.dsl.kernel import Template
from argus.core.dsl.programs import ProgramTemplate
from argus.core.dsl.source_location import span_of_function
from argus.core.ir import Kernel, Program
from argus.core.span import NOWHERE, Frame, Span

SECONDS = 30.0
"""How long a file may take to load, and each of its kernels to be traced, unless the caller says otherwise."""


@frozen
class Exported:
    """One kernel of a file. name: what the report calls it; config: which instance, where `source` is a family.

    program: the one that launches it, where it is the kernel of launch number `launch`.
    """

    name: str
    source: Template | Kernel
    config: str | None = None
    program: Program | None = None
    launch: int = 0

    def trace(self, *, seconds: float = SECONDS) -> Kernel:
        """The kernel itself.

        Raises:
            ArgusError: E1xx or E2xx for what is wrong with it, E006 if tracing takes longer than `seconds`.
        """
        if isinstance(self.source, Kernel):
            return _called(self.source, self.name)
        function = self.source.function
        span = _place_of(function, self.source.name)
        with limited(seconds, f"tracing `{self.name}`", span):
            try:
                return _called(self.source.trace(self.config), self.name)
            except SystemExit as left:
                raise ArgusError(_left("E103", f"kernel `{self.name}`", left, span)) from left


def _called(kernel: Kernel, name: str) -> Kernel:
    return kernel if kernel.name == name else evolve(kernel, name=name)


def located(what: str) -> Path:
    """The path of the file that `FILE` or `FILE:KERNEL` names. Raises ArgusError (E001) if there is none."""
    return _locate(_split(what)[0])[0]


def load(what: str, *, seconds: float = SECONDS, beside: Path | None = None) -> tuple[Exported, ...]:
    """The kernels that `FILE` or `FILE:KERNEL` names, in the order in which the file defines them.

    FILE is a path, or the dotted name of a module. A family is all its instances, each of which may also be
    named (`gemm_cdna3`). A program is the kernels that it launches, `gemm_split_partial`, all of them by its own
    name; these do not count by themselves but where they are families. What the file merely imports from another
    module does not count. The file runs in this process, under a private name, with its folder first on the path.
    beside: a folder that it may import from as if it were its own, where it is a copy of a file there.
    SIGALRM is used for the time limit, which holds on the main thread of a POSIX system only.

    Raises:
        ArgusError: E001 if there is no such file, E002 if it does not parse, E003 if it raises, E004 if it
            exports no kernel, E005 if none has the name, E006 if it takes longer than `seconds`.
    """
    return load_with_names(what, seconds=seconds, beside=beside)[0]


def load_with_names(
    what: str, *, seconds: float = SECONDS, beside: Path | None = None
) -> tuple[tuple[Exported, ...], Mapping[str, object]]:
    """As `load`, with all names of the file's module level. Raises ArgusError as `load`."""
    file, wanted = _split(what)
    path, module_name = _locate(file)
    folder = nullcontext() if beside is None else _folder_on_path(beside)
    with limited(seconds, f"loading `{file}`", _top_of(str(path))), folder:
        module = _run(path, file, module_name)
    exported = tuple(_exported(module))
    if not exported:
        _refuse(
            "E004",
            f"`{file}` exports no kernel: no name at its module level is one",
            "decorate a function with `@kernel(target=gfx942, threads=256)`; names that start with `_` do not count",
        )
    return exported if wanted is None else _named(exported, wanted, file), vars(module)


# -- finding the file ----------------------------------------------------------------------------------------


def _split(what: str) -> tuple[str, str | None]:
    """FILE and KERNEL; a colon in the name of an existing file is part of it."""
    file, colon, name = what.rpartition(":")
    return (file, name) if colon and file and not Path(what).exists() else (what, None)


def _locate(file: str) -> tuple[Path, str | None]:
    """The path of a readable file and, if it was named as a module, that module's name."""
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
    with _folder_on_path(path.parent if module_name is None else Path.cwd()), _blaming(path, shown):
        if module_name is not None:
            return importlib.import_module(module_name)
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        try:
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


_PARSE_HELP = f"mend it for Python {sys.version_info[0]}.{sys.version_info[1]}, which runs Argus here"


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
def _blaming(path: Path, shown: str) -> Generator[None]:
    """Turn what the file raises into a report at its own line; an interrupt from the keyboard passes."""
    try:
        yield
    except (ArgusError, KeyboardInterrupt, _TooLongError):
        raise
    except SystemExit as problem:
        raise ArgusError(_left("E003", f"`{shown}`", problem, _top_of(str(path)))) from problem
    except BaseException as problem:
        message = f"`{shown}` raised {_described(problem)} while it was loaded"
        where = _line_in(_top_of(str(path)), problem.__traceback__)
        advice = "mend the line shown; a kernel file must load by itself"
        raise ArgusError(Diagnostic("E003", "error", message, Label(where, "raised here"), help=advice)) from problem


def _left(code: str, subject: str, problem: SystemExit, within: Span) -> Diagnostic:
    where = _line_in(within, problem.__traceback__)
    message = f"{subject} ended the program with `sys.exit({problem.code!r})`"
    return Diagnostic(code, "error", message, Label(where, "left here"), help="remove the call: a kernel file is read")


def _described(problem: BaseException) -> str:
    text = str(problem)
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


def _line_in(within: Span, trace: TracebackType | None) -> Span:
    """The innermost line of the file of this place that the exception passed through, else the place."""
    found, file = within, within.frames[0].file if within.frames else ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == file:
            found = Span((Frame(file, trace.tb_lineno, 0, 0, code.co_name),))
        trace = trace.tb_next
    return found


def _top_of(file: str) -> Span:
    return Span((Frame(file, 1, 0, 0, "<module>"),))


# -- the time limit ------------------------------------------------------------------------------------------


class _TooLongError(BaseException):
    """Not an Exception: the file's own handlers must not take it for theirs."""


@contextmanager
def limited(seconds: float, doing: str, span: Span) -> Generator[None]:
    """Stop what takes longer, with E006. On the main thread of a POSIX system only: elsewhere there is no limit."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _stop)
    # Repeated, for code that catches everything in a loop, and for where `_stop` lets it pass.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
    try:
        yield
    except _TooLongError as stopped:
        message = f"{doing} took longer than {seconds:g} s"
        label = Label(_line_in(span, stopped.__traceback__), "still running")
        raise ArgusError(Diagnostic("E006", "error", message, label, help=_TIME_HELP)) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


_TIME_HELP = "keep work and endless loops out of the module level and of kernels, or allow more time (--load-seconds)"


def _stop(_signal: int, frame: FrameType | None) -> None:
    """Not while Z3 makes or drops an object: one half made complains when it goes, what a finaliser raises is lost."""
    while frame is not None:
        if frame.f_code.co_name in _FRAGILE and str(frame.f_globals.get("__name__")).startswith("z3."):
            return
        frame = frame.f_back
    raise _TooLongError


_FRAGILE = ("__init__", "__del__")


# -- what it exports -----------------------------------------------------------------------------------------


def _exported(module: ModuleType) -> Iterator[Exported]:
    launched = {
        name: tuple(_launched(name, value))
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
        elif name in launched:
            yield from launched[name]
        elif isinstance(value, Template) and not _imported(value, module):
            yield from _instances(name, value, places)
        else:
            continue
        seen.append(value)


def _instances(name: str, value: Template, launched: Collection[Span]) -> Iterator[Exported]:
    """The kernels of a family; a kernel alone, unless a program launches it."""
    code = getattr(value.function, "__code__", None)
    if value.configs or code is None or span_of_function(code) not in launched:
        for config in value.instances():
            yield Exported(name if config is None else f"{name}_{config}", value, config)


def _launched(name: str, value: ProgramTemplate) -> Iterator[Exported]:
    """The kernels of a program, as its launches specialise them."""
    for config in value.instances():
        whole = name if config is None else f"{name}_{config}"
        made = value.trace(config)
        for number, launch in enumerate(made.launches):
            yield Exported(f"{whole}_{launch.kernel.name}", launch.kernel, program=made, launch=number)


def _imported(template: Template | ProgramTemplate, module: ModuleType) -> bool:
    """Whether another module holds this very template; one made by another module's function is the file's own."""
    home = sys.modules.get(getattr(template.function, "__module__", ""))
    return home is not None and home is not module and any(each is template for each in vars(home).values())


def _named(exported: Sequence[Exported], wanted: str, file: str) -> tuple[Exported, ...]:
    families = [each for each in exported if each.config and each.name == f"{wanted}_{each.config}"]
    families = families or [each for each in exported if each.program is not None and each.program.name == wanted]
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
    """What may stand after the colon: kernels, families and their instances."""
    names: Mapping[str, None] = dict.fromkeys(
        name for each in exported for name in (each.name.removesuffix(f"_{each.config}"), each.name)
    )
    return tuple(names)


def _place_of(function: object, name: str) -> Span:
    code = getattr(function, "__code__", None)
    return NOWHERE if code is None else Span((Frame(code.co_filename, code.co_firstlineno, 0, 0, name),))


def _refuse(code: str, message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic(code, "error", message, help=advice))
