"""The numbered invariants that Argus checks, one sentence each. An id is also the code of its diagnostics."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Domain = Literal["T", "A", "C", "P", "V", "R", "B"]
DOMAINS: dict[Domain, str] = {
    "T": "tags: equality of tags through layouts",
    "A": "automaton: the order of events on a slot or a barrier",
    "C": "counting: arrivals, bytes, operations in flight, budgets",
    "P": "permutation: every element once and none outside",
    "V": "visibility: what an asynchronous operation may see and when",
    "R": "ranges: bounds and widths of integers",
    "B": "banks: conflicts of shared memory",
}


@frozen
class Invariant:
    """One property of every kernel with the construct named by `applies`.

    statement: what must hold, for every problem size that the assumptions admit.
    """

    id: str
    title: str
    statement: str
    domain: Domain
    applies: str

    @property
    def page(self) -> str:
        """The file name of its page in docs/invariants."""
        return f"I{int(self.id[1:]):02}.md"


INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "I1",
        "operands of a multiplication agree",
        "The A and B elements that one matrix instruction multiplies carry equal values of every tag name they share.",
        "T",
        "matrix multiplication",
    ),
    Invariant(
        "I2",
        "an accumulator belongs to one output element",
        "An accumulator element takes its tag from the row of A and the column of B, and that tag is the same in "
        "every iteration.",
        "T",
        "matrix multiplication",
    ),
    Invariant(
        "I3",
        "every product is added exactly once",
        "The contributions to an accumulator cover the contracted range once each and hold nothing outside it; the "
        "tail is exact padding, not leftovers.",
        "P",
        "accumulation",
    ),
    Invariant(
        "I4",
        "every output element is written exactly once",
        "The map from (block, iteration, thread, value) to output elements is one to one, onto the output and in "
        "range.",
        "P",
        "output tensors",
    ),
    Invariant(
        "I5",
        "a slot is read only while it is full and written only while it is free",
        "Between a write to a shared slot and the reads of it, and between those reads and the next write, there is "
        "an event that orders them for all threads concerned.",
        "A",
        "shared memory",
    ),
    Invariant(
        "I6",
        "a wait names the phase of its use",
        "The parity a wait asks for is the parity of the slot's use count, also when the count runs on across output "
        "tiles.",
        "A",
        "rings and phase barriers",
    ),
    Invariant(
        "I7",
        "expected bytes are the bytes that arrive",
        "The bytes announced to a transaction barrier in a phase equal the sum over all copies that complete on it "
        "in that phase, from this block and its peers.",
        "C",
        "transaction barriers",
    ),
    Invariant(
        "I8",
        "arrivals match the barrier's count",
        "In every phase the number of arrivals equals the count with which the barrier was initialised, and no two "
        "live barriers share an id.",
        "C",
        "counted and named barriers",
    ),
    Invariant(
        "I9",
        "every path executes the same barriers",
        "On every path, including early exits and empty loops, a thread executes the barrier operations for which "
        "its peers wait.",
        "A",
        "barriers",
    ),
    Invariant(
        "I10",
        "shared-memory operands are not modified while a multiplication reads them",
        "The shared operands of an asynchronous multiplication are not modified between its issue and the wait that "
        "covers it, for every group that reads them.",
        "V",
        "asynchronous multiplication",
    ),
    Invariant(
        "I11",
        "registers of an operation in flight are not accessed",
        "Registers that an asynchronous operation reads or writes are not accessed between its issue and the wait "
        "that covers it.",
        "V",
        "asynchronous operations on registers",
    ),
    Invariant(
        "I12",
        "a proxy fence separates ordinary writes from asynchronous access",
        "Between an ordinary write and an asynchronous access to the same shared data there is a proxy fence and "
        "then a barrier.",
        "V",
        "two memory proxies",
    ),
    Invariant(
        "I13",
        "a bulk store has read its buffer before the buffer is rewritten",
        "Before a shared buffer that a bulk store reads is written again, the thread that issued the store has "
        "waited for it, and then a barrier with all writers follows.",
        "V",
        "bulk stores",
    ),
    Invariant(
        "I14",
        "barriers are initialised before their first use",
        "The initialisation of a memory barrier is fenced and made visible to all its users before their first "
        "arrival or wait.",
        "V",
        "memory barriers",
    ),
    Invariant(
        "I15",
        "no block of a cluster exits while another may still access it",
        "No block of a cluster ends while another block may access its shared memory or its barriers.",
        "A",
        "clusters",
    ),
    Invariant(
        "I16",
        "a multicast delivers the tile that each receiver needs",
        "All blocks in a multicast's mask need the tile with the same tag, and all agree on the mask.",
        "T",
        "multicast copies",
    ),
    Invariant(
        "I17",
        "a descriptor describes the layout that was written",
        "The layout named by a matrix descriptor (swizzle, major order, strides) is the layout its producer used, and "
        "the swizzle fits the part each group reads.",
        "T",
        "matrix descriptors",
    ),
    Invariant(
        "I18",
        "a shared buffer starts on the period of its swizzle",
        "The base of every stage of a shared buffer, and hence the size of a stage, is a multiple of the swizzle's "
        "period and of the widest access.",
        "C",
        "shared memory",
    ),
    Invariant(
        "I19",
        "a copy respects the limits of its instruction",
        "Box, strides and addresses of a copy satisfy the instruction's limits on extents, and its alignment to the "
        "bytes per access.",
        "R",
        "copies",
    ),
    Invariant(
        "I20",
        "the epilogue reads an accumulator in the layout of its instruction",
        "The layout by which an accumulator is stored is the result layout of the matrix instruction that filled it.",
        "T",
        "matrix multiplication",
    ),
    Invariant(
        "I21",
        "the registers of all roles fit the register file",
        "The registers requested by all roles fit the file, each request is one the hardware supports, and every "
        "warp of a warpgroup executes it.",
        "C",
        "register reallocation",
    ),
    Invariant(
        "I22",
        "shared memory fits, and overlapping buffers are never live at the same time",
        "The shared memory of a block, padding included, fits the target, and buffers at the same addresses have "
        "disjoint lifetimes, asynchronous readers included.",
        "C",
        "shared memory",
    ),
    Invariant(
        "I23",
        "a rescale belongs to its row and its step",
        "The factor applied to the running sum and the output of an online softmax is that of the same row and the "
        "same step; the guard value never enters the state.",
        "T",
        "online softmax",
    ),
    Invariant(
        "I24",
        "probabilities are multiplied by the values of their own block",
        "The probability block and the value block of one multiplication carry the same key block.",
        "T",
        "attention",
    ),
    Invariant(
        "I25",
        "unmasked iterations need no mask, and skipped blocks are fully masked",
        "Iterations without a mask hold no forbidden pair, and skipped blocks hold only forbidden pairs.",
        "R",
        "masks",
    ),
    Invariant(
        "I26",
        "every query head uses its own key head",
        "The key head of a query head is its index divided by the group's size, and blocks map one to one onto heads.",
        "T",
        "grouped heads",
    ),
    Invariant(
        "I27",
        "a tile's rows and its weights belong to one expert",
        "The expert of the weights equals the expert of every valid row in the tile, and a sentinel is never used as "
        "an address.",
        "T",
        "grouped multiplication",
    ),
    Invariant(
        "I28",
        "an integer fits its type",
        "Every index times its stride, and every sum of integer products, stays inside the integer type that holds it, "
        "for the largest declared shapes.",
        "R",
        "all addresses and integer sums",
    ),
    Invariant(
        "I29",
        "a tensor descriptor in use does not change",
        "A tensor descriptor is edited only after all copies through it have completed, with release and acquire "
        "around the edit.",
        "V",
        "tensor descriptors",
    ),
    Invariant(
        "I30",
        "shared reads are drained before the barrier that frees their source",
        "A wave waits for its own outstanding shared reads before it arrives at the barrier after which another wave "
        "overwrites their source.",
        "V",
        "AMD shared reads",
    ),
    Invariant(
        "I31",
        "a wait leaves only younger operations in flight",
        "The number of operations that a counter wait leaves in flight is at most the number issued after the one "
        "whose result is needed.",
        "C",
        "counter waits",
    ),
    Invariant(
        "I32",
        "skewed groups of waves pass equally many barriers",
        "Groups of waves that run a barrier apart pass equally many barriers: the skew at the start is undone at the "
        "end.",
        "C",
        "ping-pong schedules",
    ),
    Invariant(
        "I33",
        "bank conflicts are as declared",
        "The number of shared-memory passes of an access, for the lane groups that the target serves together, is at "
        "most the declared one.",
        "B",
        "shared memory",
    ),
    Invariant(
        "I34",
        "slices of a split contraction are disjoint and complete",
        "Partial slices are disjoint and cover the contraction, one owner finishes each tile, and the workspace is "
        "initialised.",
        "P",
        "split contraction",
    ),
    Invariant(
        "I35",
        "a scale belongs to the accumulator it multiplies",
        "The row and the contraction block of a scale equal those of the partial sums it is applied to.",
        "T",
        "block scales",
    ),
    Invariant(
        "I36",
        "a loop that restages a buffer orders its readers before the next round",
        "Every asynchronous read of a shared buffer that a loop refills is complete and ordered before the refill of "
        "the next iteration.",
        "A",
        "staged loops",
    ),
    Invariant(
        "I37",
        "every access lies inside its buffer",
        "Each element that is read or written lies inside its buffer, or the access declares what happens at the edge.",
        "R",
        "all accesses",
    ),
    Invariant(
        "I38",
        "no value is read before it has been written",
        "Every element that is read has been written before in program order, and no reset lies between.",
        "T",
        "shared memory and registers",
    ),
    Invariant(
        "I39",
        "every asserted relation between tags holds",
        "At each `assert_equal`, `assert_distinct`, `assert_relation` and `assert_equals`, what is asserted holds of "
        "each element.",
        "T",
        "kernels that assert one",
    ),
    Invariant(
        "I40",
        "matrix instructions add no more products than declared",
        "Between two assignments of an element of a register tile that declares a number, matrix instructions add at "
        "most that many products to it.",
        "C",
        "tiles that declare a number",
    ),
)

_BY_ID = {invariant.id: invariant for invariant in INVARIANTS}


def invariant(name: str) -> Invariant:
    """The invariant of an id such as `I5`.

    Raises:
        KeyError: no invariant has this id.
    """
    return _BY_ID[name]
