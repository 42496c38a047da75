"""Error codes of diagnostics that are not invariants, with title and explanation.

E0xx input files, E1xx tracing, E2xx well-formedness, E3xx code generation, E4xx launches and assumptions, E5xx
unsupported constructs, E6xx solvers, E7xx command line, E8xx layouts, E9xx search, E94x sandboxing of untrusted code.
A code is never reused for another meaning.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Entry:
    """A code with its title and a one-sentence explanation; its page is docs/errors/CODE.md."""

    code: str
    title: str
    explanation: str


ENTRIES: tuple[Entry, ...] = (
    Entry("E001", "file cannot be read", "The file named on the command line is absent, a folder, or not readable."),
    Entry("E002", "file does not parse", "The file is not valid Python."),
    Entry(
        "E003", "file raised an exception while loading", "Executing the file to find its kernels raised an exception."
    ),
    Entry("E004", "file defines no kernel", "No module-level name of the file is a kernel or a family of kernels."),
    Entry(
        "E005",
        "kernel not found in file",
        "The file defines kernels, but none with the name after the colon, or none with the requested configuration.",
    ),
    Entry(
        "E006",
        "loading timed out",
        "Loading the file, or tracing one of its kernels, did not finish within the time limit.",
    ),
    Entry(
        "E101",
        "value not known while tracing",
        "Python needs the value of an expression that is known only on the GPU.",
    ),
    Entry(
        "E102",
        "name rebound in a traced loop",
        "The body of a traced loop assigns a new object to a name that the next iteration would read.",
    ),
    Entry("E103", "kernel raised an exception while tracing", "Tracing the kernel's function raised an exception."),
    Entry(
        "E104",
        "traced loop or branch left early",
        "A traced loop or branch was left in a way that tracing cannot observe, such as `break` or `return`.",
    ),
    Entry(
        "E105", "called outside a kernel", "A statement of the language was called while no kernel was being traced."
    ),
    Entry("E106", "invalid operand", "A statement of the language got an operand of the wrong kind, shape or number."),
    Entry(
        "E107",
        "incomplete kernel declaration",
        "The decorator, an annotation or the chosen configuration lacks something that a kernel needs.",
    ),
    Entry(
        "E108",
        "no instruction for this copy",
        "The target has no instruction that copies this many bits between these memories.",
    ),
    Entry(
        "E109",
        "tile does not divide",
        "The extents of a tile are not multiples of what an instruction, or the threads that share the tile, need.",
    ),
    Entry(
        "E110",
        "formula of other coordinates",
        "A function in a formula takes another number of coordinates or variables than the tensor or the range gives.",
    ),
    Entry(
        "E111",
        "formula reads no tensor of the kernel",
        "A formula is computed from registers, shared memory, or a tensor that the kernel does not have.",
    ),
    Entry(
        "E112",
        "formula reads what the kernel writes",
        "A formula names the output that it is about, or another tensor that the kernel writes.",
    ),
    Entry(
        "E113",
        "element of another number of axes",
        "A formula reads a tensor with fewer or more coordinates than it has axes.",
    ),
    Entry("E114", "formula is no value", "A formula, or an operand in it, is not a real number."),
    Entry(
        "E201",
        "used outside its scope",
        "A value or a loop variable is used outside the loop or branch that defines it.",
    ),
    Entry(
        "E202",
        "invalid role",
        "A role must be at the top level of the kernel, on its own warps; warpgroup operations need whole warpgroups.",
    ),
    Entry("E203", "shapes of a copy differ", "The source and the target of a copy have different shapes."),
    Entry(
        "E204",
        "element types of a copy differ",
        "The source and the target of a copy have different element types; a copy never converts.",
    ),
    Entry(
        "E205",
        "elements in registers of different threads",
        "The operands of one operation are held in registers of different threads.",
    ),
    Entry(
        "E206",
        "operand does not fit the instruction",
        "A fragment's layout or element type is not the one that the matrix instruction requires.",
    ),
    Entry(
        "E207",
        "divergent branch",
        "A branch or a loop bound depends on the thread, although the threads execute it together.",
    ),
    Entry(
        "E208",
        "invalid use of a barrier",
        "The whole block must create a barrier before its use; each phase must get the arrivals and bytes it expects.",
    ),
    Entry(
        "E209", "copy of symbolic shape", "The extent of a copy is known only on the GPU; tiles have constant extents."
    ),
    Entry("E210", "no such queue", "A wait names a queue of asynchronous operations that the target does not have."),
    Entry(
        "E211",
        "swizzle does not divide the tile",
        "The size of a shared tile is not a multiple of its swizzle's period.",
    ),
    Entry("E212", "loop step is zero", "The step of a loop is zero."),
    Entry(
        "E213",
        "invalid number of threads",
        "The kernel's threads are not a multiple of the wave size, too many, or not as many as an instruction needs.",
    ),
    Entry(
        "E214",
        "collective operation by one thread",
        "One thread executes the body of `elected()`, so an instruction of several threads would wait for the others.",
    ),
    Entry(
        "E215",
        "single-thread instruction executed by several threads",
        "An instruction that one thread must issue is reached by several threads, each of which would issue it.",
    ),
    Entry("E216", "registers of another role", "A fragment or a counter is used by threads that do not hold it."),
    Entry(
        "E217",
        "register index not constant",
        "The index of a register depends on a value that is known only on the GPU.",
    ),
    Entry(
        "E218",
        "layout not supported by the matrix descriptor",
        "A matrix operand in shared memory has a layout that no matrix descriptor can encode.",
    ),
    Entry("E219", "wait on an empty queue", "A wait names a queue to which its threads issue no operations."),
    Entry(
        "E220",
        "integer tensor is not read-only",
        "An integer read from memory must have one value throughout the kernel, so its tensor must not be written.",
    ),
    Entry(
        "E221",
        "invalid launch in a program",
        "A launch reads a workspace that no launch has written, or gets one tensor as two arguments and writes it.",
    ),
    Entry("E222", "wait cannot be inserted", "No wait on a queue, where one is asked for, completes the operation."),
    Entry("E301", "unknown target", "The target is not one that Argus generates code for."),
    Entry(
        "E302",
        "output cannot be written",
        "The output folder or a file in it cannot be created; no partial output is left.",
    ),
    Entry("E303", "compiler missing", "The compiler of the target is not installed in this environment."),
    Entry(
        "E304",
        "compiler failed",
        "The compiler rejected the generated code or crashed: a bug of Argus or of the compiler.",
    ),
    Entry("E305", "registers spill", "The compiler spilled registers of the kernel to memory, which makes it slow."),
    Entry(
        "E306",
        "wgmma instructions serialised",
        "The assembler found accumulator accesses between wgmma instructions, and serialises the instructions.",
    ),
    Entry(
        "E307",
        "compiler warns of a mistake",
        "The compiler warns that the generated code uses a variable before it is set, hides one, or loses bits.",
    ),
    Entry("E308", "hoisted wait", "The compiler waits before what is to overlap, or moves code across a wait."),
    Entry(
        "E309",
        "division by a subroutine",
        "The compiler translated a division, or another operation without an instruction, into calls of a subroutine.",
    ),
    Entry("E401", "array does not match its declaration", "An array's shape or element type is not the declared one."),
    Entry("E402", "assumption violated", "The sizes or integers of a launch violate an assumption of the proof."),
    Entry(
        "E403",
        "contradictory assumptions",
        "No launch satisfies all assumptions, so any statement would follow from them.",
    ),
    Entry(
        "E404",
        "output that no assertion determines",
        "All obligations are proved, but no assertion determines what an output of the kernel contains.",
    ),
    Entry("E405", "launch refused", "A launch violates a condition of its kernel, or the driver rejected it."),
    Entry("E406", "no GPU available", "There is no driver, no device, or no bindings to use them."),
    Entry("E407", "wrong GPU architecture", "The available GPU cannot run code for the kernel's target."),
    Entry("E408", "out of memory", "The GPU or the host has less free memory than the tensors need."),
    Entry(
        "E409",
        "kernel crashed",
        "The launched kernel ended with a fault: an invalid memory access, or the end of its process.",
    ),
    Entry("E410", "kernel timed out", "The kernel did not finish within the time limit and was stopped."),
    Entry("E411", "too large to interpret", "The sizes need more work than the interpreter does in reasonable time."),
    Entry(
        "E412",
        "result differs from the reference",
        "An element of an output differs from the reference by more than rounding explains.",
    ),
    Entry(
        "E413",
        "kernel is not proved",
        "A built-in kernel has no proof by this version of Argus, and is therefore not launched.",
    ),
    Entry(
        "E414",
        "no kernel for these operands",
        "No built-in kernel computes this operator for operands of this type, shape and device.",
    ),
    Entry("E415", "emitted text differs from the kernel", "Executed on the CPU, the text or its code is not right."),
    Entry("E416", "machine code breaks a rule", "Executed on the CPU, an instruction breaks a rule of the machine."),
    Entry("E417", "output is not the expected one", "A kernel leaves another result than its launch expects."),
    Entry("E418", "graph not covered", "Operations of a graph have no proved kernel, or an option is unknown."),
    Entry("E420", "code object cannot be executed", "A file is no code object for gfx942 that can be executed."),
    Entry("E421", "no machine code to execute", "Machine code is executed for gfx942 only."),
    Entry("E422", "launch cannot be read", "The description of a launch, or a file of it, is not valid."),
    Entry(
        "E230",
        "invalid cluster",
        "The grid is not a multiple of the cluster, the cluster is too large, or a rank may be outside it.",
    ),
    Entry(
        "E231",
        "cluster barrier not reached by all threads",
        "A cluster barrier must be reached by all threads of all blocks of the cluster, the same number of times.",
    ),
    Entry("E232", "too many resident blocks", "One processor does not hold as many blocks as the kernel asks for."),
    Entry(
        "E501",
        "not built yet",
        "The construct is part of the language, but this part of Argus does not implement it yet.",
    ),
    Entry("E502", "instruction not modelled", "An instruction of the machine code has no semantics here."),
    Entry("E601", "unknown solver", "No installed solver has this name."),
    Entry(
        "E602",
        "solver does not load",
        "The solver is registered, but loading it fails, or the loaded object is not a solver.",
    ),
    Entry(
        "E603",
        "script is not a query",
        "An SMT-LIB script uses something that queries do not contain, or lacks an assertion that every query has.",
    ),
    Entry(
        "E604",
        "answers disagree",
        "A solver's answer to a query contradicts the script's status, or another solver's answer.",
    ),
    Entry("E701", "invalid command line", "An option or argument is missing, unknown or contradictory."),
    Entry(
        "E801",
        "not a layout",
        "Shape and stride must be congruent integers or nested tuples of integers, with positive extents.",
    ),
    Entry("E802", "text is not a layout", "A layout is written in CuTe's notation: `(4,8):(1,4)`."),
    Entry("E803", "invalid coordinate", "A coordinate, a mode or a tiler is not congruent with the shape."),
    Entry(
        "E804",
        "no exact composition",
        "No layout whose shape refines the right operand's shape equals the composed function on its whole domain.",
    ),
    Entry(
        "E805",
        "no complement",
        "No layout completes this one so that the images of both together fill an interval exactly once.",
    ),
    Entry("E806", "no inverse", "No layout maps the images back, or two elements have the same image."),
    Entry(
        "E807",
        "extents do not divide",
        "The operation splits modes whose extents or strides are not multiples of what it needs.",
    ),
    Entry("E808", "not a swizzle", "A swizzle reads some bits and xors them into others; the two must not overlap."),
    Entry("E809", "not linear over F2", "The function is not linear over F2, or no layout or swizzle has this matrix."),
    Entry("E810", "too large for a table", "The answer needs a table with more elements than the limit."),
    Entry(
        "E811", "undecided for these symbols", "A condition on symbols is false, or the operation has no symbolic form."
    ),
    Entry("E812", "no swizzle found", "No swizzle in the search space reduces bank conflicts to the requested degree."),
    Entry("E813", "picture cannot be drawn", "The layout is too large to draw, or the file extension is unknown."),
    Entry(
        "E814",
        "library for comparison not installed",
        "A comparison was requested with a library that cannot be imported.",
    ),
    Entry("E815", "another library refused", "A library under comparison raised, or returned what is no layout."),
    Entry("E901", "no knowledge base", "The folder contains no techniques, or one of its files cannot be read."),
    Entry(
        "E902", "invalid technique", "A file of the knowledge base does not have the required fields of a technique."
    ),
    Entry("E903", "unknown problem", "The problem, target or design requested for a search does not exist."),
    Entry(
        "E904",
        "journal cannot be used",
        "The journal of a search is invalid, cannot be written, or lacks the requested run.",
    ),
    Entry("E905", "search cannot start", "The requested planner or scheduler is not available."),
    Entry("E906", "unknown name", "The named technique, design or timing table does not exist."),
    Entry(
        "E907", "kernel does not match the problem", "The text's kernels are not the kernel that the problem requires."
    ),
    Entry("E920", "no client for language models", "The planner `llm` needs a package that is not installed."),
    Entry(
        "E921", "API key missing or rejected", "There is no API key for the language model, or its endpoint rejects it."
    ),
    Entry("E922", "request rejected", "The endpoint of the language model rejects this request."),
    Entry(
        "E923",
        "no answer from the language model",
        "The endpoint of the language model is unreachable, overloaded, or too slow.",
    ),
    Entry(
        "E924",
        "budget for the language model spent",
        "Another call could cost more than the remaining budget for the language model.",
    ),
    Entry("E925", "unknown price", "A limit in dollars is set, but the price of the model is not known."),
    Entry(
        "E926",
        "unusable answer",
        "The language model's answer was invalid, and still was after the errors were reported to it.",
    ),
    Entry("E927", "invalid setting", "A setting of the language model has an invalid value."),
    Entry("E928", "recorded answer damaged", "An answer of the language model in the journal cannot be read back."),
    Entry("E930", "certificate cannot be read", "There is no certificate at the given path, or it is not a text file."),
    Entry("E931", "not a certificate", "A certificate lacks required fields, or has fields of the wrong type."),
    Entry(
        "E932",
        "nothing to deliver",
        "A search was asked to deliver its best design, but no candidate has passed all checks.",
    ),
    Entry("E933", "certificate check incomplete", "Checking a certificate exceeded the time or memory limit."),
    Entry(
        "E941",
        "no sandbox for untrusted code",
        "No sandbox is available on this machine, so kernel code from a model or an agent is not run.",
    ),
    Entry(
        "E942",
        "untrusted code timed out",
        "A sandboxed process exceeded its time limit and was killed with all its child processes.",
    ),
    Entry(
        "E943", "untrusted code exceeded a limit", "A sandboxed process exceeded its memory limit or its output limit."
    ),
    Entry(
        "E944",
        "untrusted code ended its process",
        "The sandboxed process ended before it reported the kernels of the code.",
    ),
    Entry(
        "E945",
        "sandbox output is not a kernel",
        "The output of a sandboxed process is not a kernel that tracing can produce.",
    ),
)

_BY_CODE = {item.code: item for item in ENTRIES}


def entry(code: str) -> Entry:
    """The entry of a code such as `E301`. Raises KeyError for an unknown code."""
    return _BY_CODE[code]
