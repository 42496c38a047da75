"""The codes of diagnostics that are no invariants: E0xx input, E1xx tracing, E2xx well-formedness, E3xx emission,
E4xx arrays and what is assumed and claimed, E5xx limits of this version, E6xx solvers, E7xx usage,
E8xx layouts, E9xx the planner, and E94x kernel text that nobody vouches for. A code is never given a second meaning.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Entry:
    """A code, what it is called, and why it exists in one or two sentences. Its page is docs/errors/CODE.md."""

    code: str
    title: str
    explanation: str


ENTRIES: tuple[Entry, ...] = (
    Entry("E001", "file cannot be read", "The file named on the command line is absent, a folder, or not readable."),
    Entry("E002", "file does not parse", "The file is not Python that this interpreter can parse."),
    Entry("E003", "file raised while it was loaded", "Running the file to find its kernels ended in an exception."),
    Entry("E004", "file exports no kernel", "No name at the file's module level is a kernel or a family of kernels."),
    Entry(
        "E005",
        "kernel not found in file",
        "The file exports kernels, but none of the name after the colon, or of the configuration asked for.",
    ),
    Entry(
        "E006",
        "loading took too long",
        "The file, or the function of one of its kernels, did not finish within the time that was allowed.",
    ),
    Entry("E101", "no value while tracing", "Python asked for the value of something that is known only on the GPU."),
    Entry(
        "E102",
        "name rebound in a traced loop",
        "A loop's body gave a new object to a name that the next iteration would read.",
    ),
    Entry(
        "E103",
        "kernel raised while it was traced",
        "Running the kernel's function to describe the kernel ended in an exception.",
    ),
    Entry(
        "E104",
        "a scope was left before its end",
        "A traced loop or branch was left by something that tracing cannot see.",
    ),
    Entry(
        "E105", "called outside a kernel", "A statement of the language was called while no kernel was being traced."
    ),
    Entry(
        "E106", "operand does not fit", "A statement of the language got an operand of the wrong kind, shape or number."
    ),
    Entry(
        "E107",
        "kernel is not declared completely",
        "The decorator, an annotation or the chosen configuration does not say what a kernel needs.",
    ),
    Entry(
        "E108",
        "no instruction for this copy",
        "The target has no instruction that copies these bits between these memories.",
    ),
    Entry(
        "E109",
        "tile does not divide",
        "The extents of a tile, an instruction and the threads that share it do not divide.",
    ),
    Entry(
        "E201", "used outside its body", "A value or a loop variable is used outside the loop or branch that made it."
    ),
    Entry(
        "E202",
        "roles do not fit the kernel",
        "Roles are bodies of the kernel itself, on warps of their own; what warpgroups do together takes whole ones.",
    ),
    Entry("E203", "shapes of a copy differ", "The two sides of a copy have different shapes."),
    Entry(
        "E204",
        "element types of a copy differ",
        "The two sides of a copy hold different element types; a copy never converts.",
    ),
    Entry(
        "E205",
        "elements held by different threads",
        "Elements that meet in one operation are in the registers of different threads.",
    ),
    Entry(
        "E206",
        "operand does not fit the instruction",
        "A fragment's registers or type are not what the matrix instruction takes.",
    ),
    Entry(
        "E207",
        "branch differs between threads",
        "A branch or a loop bound depends on the thread, although threads run it together.",
    ),
    Entry(
        "E208",
        "barrier is not ready or not fed",
        "A barrier is made by the whole block before its use, counts whole phases, and gets what it counts.",
    ),
    Entry("E209", "copy of symbolic shape", "A copy's extent is known only on the GPU; tiles have fixed extents."),
    Entry("E210", "target has no such queue", "A wait names a queue of operations that the target does not have."),
    Entry(
        "E211",
        "swizzle does not divide the tile",
        "A swizzle permutes blocks that the shared tile is no whole number of.",
    ),
    Entry("E212", "loop without a step", "The step of a loop is zero."),
    Entry(
        "E213",
        "number of threads",
        "The kernel's threads are no whole number of waves, too many, or not what an instruction needs.",
    ),
    Entry(
        "E214",
        "one thread does what many do together",
        "Inside `elected()` one thread runs alone, and an instruction of several threads would wait for the others.",
    ),
    Entry(
        "E215",
        "many threads do what one should",
        "An instruction of one thread is reached by several, which would each execute it.",
    ),
    Entry(
        "E216",
        "registers of another role",
        "A register tile or a counter is used by other threads than those that hold it.",
    ),
    Entry(
        "E217",
        "registers chosen while the kernel runs",
        "The number of a register depends on something that is known only on the GPU.",
    ),
    Entry(
        "E218",
        "matrix is not as the instruction reads it",
        "An operand in shared memory lies otherwise than any matrix descriptor can say.",
    ),
    Entry("E219", "wait for nothing", "A wait names a queue to which its threads issue nothing."),
    Entry(
        "E220",
        "integers read as constants",
        "An integer from memory stands for one value wherever it is read, so nothing may write what it is read from.",
    ),
    Entry(
        "E221",
        "launch does not fit its program",
        "A launch reads a workspace that nothing has filled, or gets one tensor twice and writes it.",
    ),
    Entry("E301", "unknown target", "The target is not one that Argus emits code for."),
    Entry("E302", "output cannot be written", "The output folder or a file in it cannot be created; nothing is left."),
    Entry("E303", "compiler missing", "The compiler of the target is not installed in this environment."),
    Entry("E304", "compiler failed", "The compiler rejected the emitted text or stopped: a fault of Argus or of it."),
    Entry("E305", "registers spill", "The compiler spilled registers of the kernel to memory, which makes it slow."),
    Entry(
        "E306",
        "wgmma instructions serialised",
        "The assembler found accesses to accumulators between wgmma instructions and serialises these.",
    ),
    Entry("E401", "array does not fit its declaration", "An array's shape or element type is not what was declared."),
    Entry("E402", "assumption not met", "The sizes of the arrays contradict an assumption that the proof relies on."),
    Entry(
        "E403", "assumptions contradict each other", "No launch meets all assumptions, so that anything would follow."
    ),
    Entry(
        "E404",
        "output without an assertion",
        "Everything stated is proved, but no assertion says what an output of the kernel must hold.",
    ),
    Entry(
        "E405",
        "launch refused",
        "A launch does not meet a condition of its kernel, or the driver did not accept it.",
    ),
    Entry("E406", "no GPU to run on", "There is no driver, no device, or no bindings to talk to them."),
    Entry("E407", "GPU of another kind", "The GPU at hand does not run the code of the kernel's target."),
    Entry("E408", "no memory left", "The GPU, or what feeds it, has less free memory than the tensors take."),
    Entry(
        "E409",
        "kernel failed",
        "The kernel was launched and ended with a fault: an access outside memory, or the end of its process.",
    ),
    Entry("E410", "kernel did not finish", "The kernel was still running when its time was over, and was stopped."),
    Entry(
        "E411",
        "too large to interpret",
        "The sizes ask for more work than the interpreter does in a reasonable time.",
    ),
    Entry(
        "E412",
        "result differs from the reference",
        "An element of an output lies further from the reference than rounding explains.",
    ),
    Entry(
        "E413",
        "kernel is not proved",
        "A shipped kernel has no proof by this version of Argus, and is therefore not launched.",
    ),
    Entry(
        "E414",
        "no family for this product",
        "No shipped kernel multiplies matrices of these elements and extents on this target.",
    ),
    Entry(
        "E230",
        "cluster does not fit",
        "The grid is not one of whole clusters, a cluster is too large, or a rank may be none of it.",
    ),
    Entry(
        "E231",
        "meeting of a part of a cluster",
        "A meeting of the cluster stands where not all threads of all of its blocks reach it alike.",
    ),
    Entry("E501", "not built yet", "The construct is part of the language, but this reading of it is not built yet."),
    Entry("E601", "unknown solver", "No installed solver has this name."),
    Entry(
        "E602", "solver does not load", "The solver is declared, but loading it fails, or what is loaded is no solver."
    ),
    Entry(
        "E603",
        "script is not a query",
        "An SMT-LIB script says what no query says, or does not assert what every query takes for granted.",
    ),
    Entry("E604", "answers disagree", "A solver answers a query otherwise than its script, or another solver, says."),
    Entry("E701", "usage", "The command line does not say what to do."),
    Entry(
        "E801",
        "not a layout",
        "Shapes and strides are ints or nested tuples of ints, congruent, with positive extents.",
    ),
    Entry("E802", "text is not a layout", "A layout is written as in CuTe: `(4,8):(1,4)`."),
    Entry("E803", "coordinate does not fit", "A coordinate, a mode or a tiler has another profile than the shape."),
    Entry(
        "E804",
        "no exact composition",
        "No layout whose shape refines the right operand's gives the composed function on its whole domain.",
    ),
    Entry(
        "E805", "no complement", "No layout adds to the images of this one so that they fill an interval, each once."
    ),
    Entry("E806", "no inverse", "No layout maps the images back, or two elements have the same image."),
    Entry("E807", "extents do not divide", "The operation splits modes, and the extents do not allow it."),
    Entry("E808", "not a swizzle", "A swizzle reads some bits and xors them into others; the two must not overlap."),
    Entry("E809", "not linear over F2", "The function is no matrix of bits, or no layout or swizzle has this matrix."),
    Entry("E810", "too large for a table", "The answer needs a table of more elements than are tabulated."),
    Entry(
        "E811",
        "not decided for these symbols",
        "A condition on symbols is false, or the operation has no symbolic form.",
    ),
    Entry(
        "E812", "no swizzle found", "No swizzle within the search brings the access to the degree that was asked for."
    ),
    Entry("E813", "picture cannot be drawn", "The layout is too large for a picture, or the file's ending is unknown."),
    Entry("E814", "peer is not installed", "A comparison was asked for with a library that cannot be imported."),
    Entry("E901", "no knowledge base", "The folder holds no techniques, or one of its files cannot be read."),
    Entry("E902", "not a technique", "A file of the knowledge base does not say what a technique must say."),
    Entry("E903", "not a problem", "A search was asked for a problem, a target or a design that there is not."),
    Entry(
        "E904", "journal does not serve", "The journal of a search is no store, cannot be written, or lacks the run."
    ),
    Entry("E905", "search cannot begin", "The planner or the scheduler that was asked for is not there."),
    Entry("E906", "nothing of that name", "A technique, a design or a table of times was named that there is not."),
    Entry("E907", "kernel of another problem", "A text has other kernels than the one that the problem asks for."),
    Entry("E920", "no client for models", "The planner `llm` was asked for without the package that it needs."),
    Entry("E921", "key missing or not accepted", "There is no key for the language model, or its endpoint refuses it."),
    Entry(
        "E922",
        "request refused",
        "The endpoint of the language model answers that a request like this one is not for it.",
    ),
    Entry(
        "E923",
        "no answer from the model",
        "The endpoint of the language model cannot be reached, is overloaded, or does not answer in time.",
    ),
    Entry("E924", "budget of the model spent", "One more call might cost more than is left to spend on the model."),
    Entry("E925", "price not known", "A limit in dollars is set for a model whose price is not known."),
    Entry(
        "E926",
        "answer of no use",
        "The language model answered, and again after it was told what was wrong, in a way that proposes nothing.",
    ),
    Entry("E927", "setting not valid", "A setting of the language model has a value that it cannot have."),
    Entry("E928", "record of an answer damaged", "An answer of the language model in a journal cannot be read back."),
    Entry("E930", "certificate cannot be read", "There is no certificate at the place that was named, or no text."),
    Entry("E931", "not a certificate", "A certificate does not have the fields that one must have."),
    Entry(
        "E932", "nothing to deliver", "A search was to deliver its best design, and no candidate has passed the gate."
    ),
    Entry(
        "E933", "certificate not checked to its end", "Checking a certificate took more time or memory than there was."
    ),
    Entry(
        "E941",
        "no isolation for untrusted text",
        "Nothing on this machine keeps a process apart from it, so the kernel text of a model or an agent is not run.",
    ),
    Entry(
        "E942",
        "untrusted text took too long",
        "A contained process used all the time that it had, and was killed with everything that it had started.",
    ),
    Entry(
        "E943",
        "untrusted text took too much",
        "A contained process wanted more memory, or wrote more output, than it may.",
    ),
    Entry(
        "E944",
        "untrusted text ended its process",
        "The contained process ended before it had said which kernels the text holds.",
    ),
    Entry(
        "E945",
        "what a process wrote is no kernel",
        "The data that came out of a contained process are not those of a kernel that tracing gives.",
    ),
)

_BY_CODE = {item.code: item for item in ENTRIES}


def entry(code: str) -> Entry:
    """The entry of a code such as `E301`.

    Raises:
        KeyError: the catalogue has no such code.
    """
    return _BY_CODE[code]
