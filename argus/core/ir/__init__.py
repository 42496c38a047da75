"""The tile IR: immutable kernels, statements, views and element expressions.

    View   = (buffer, shape, at: Index over Coord*, where: Cond, peer: Index?)
    Elem   = Lit(x) | Num(Index) | Get(view, at) | Op(name, Elem*) | Cast(dtype, Elem) | Where(Test, Elem, Elem)
    Test   = Holds(Cond) | Compare(op, Elem, Elem) | Both(Test*) | Either(Test*) | Neither(Test)
    Stmt   = Alloc(buffer, count?) | Let(symbol, Peek | Atomic)
           | Copy(atom, source, target, by, edge?, signal?, peers?, combine?, cache, through?)
           | Map(target, elem) | Fold(target, source, axis, op, keep, within)
           | Mma(atom, tiling, target, a, b, init, grouped)
           | Arrive(event, count, bytes) | Await(event, phase) | Sync(barrier, how, threads)
           | Commit(queue) | Wait(queue, pending, of) | Fence(kind, scope) | Edit(map, step, tensor?)
           | Advance(counter, by)
           | Policy(name, args) | For(symbol, start, stop, step, body, unroll) | If(cond, then, otherwise)
           | Roles(role*) | One(body) | Tag(view, names) | Reset(buffer) | Assume(cond) | Assert(claim)
    Claim  = Equal | Distinct | Relation | Covers | Order | WrittenOnce | Products | Equals
    Role   = (name, first_warp, warps, agent, registers, body)
    Kernel = (name, target, parameters, threads, grid, cluster, resident, prologue, roles?, epilogue, span)
    Program= (name, parameters, sizes, workspaces, Launch(kernel, arguments, sizes)*)
    ClaimedProgram = (Program, Assert(Equals)*)

Statements compare by identity: two occurrences of equal text are two different statements.
"""

from __future__ import annotations

from argus.core.ir.advice import ADVICE, SCHEDULED, PolicyName
from argus.core.ir.claims import (
    Claim,
    Covers,
    Distinct,
    Equal,
    Equals,
    Order,
    Products,
    Relation,
    TagOf,
    WrittenOnce,
)
from argus.core.ir.elements import (
    Both,
    Cast,
    Compare,
    Either,
    Elem,
    Get,
    Holds,
    Lit,
    Neither,
    Num,
    Op,
    Test,
    Where,
)
from argus.core.ir.kernels import (
    ClaimedProgram,
    Kernel,
    Launch,
    Program,
    program_claims,
)
from argus.core.ir.statements import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Atomic,
    Await,
    Commit,
    Copy,
    Edit,
    Fence,
    Fold,
    For,
    If,
    Let,
    Map,
    Mma,
    One,
    Peek,
    Policy,
    Reset,
    Role,
    Roles,
    Stmt,
    Sync,
    Tag,
    Wait,
    bodies,
    trips,
    walk,
    with_bodies,
)
from argus.core.ir.storage import (
    Buffer,
    File,
    Origin,
    Staged,
    Strided,
    View,
    ascending_condition,
    axes_of,
    static,
    whole,
)

__all__ = [
    "ADVICE",
    "SCHEDULED",
    "Advance",
    "Alloc",
    "Arrive",
    "Assert",
    "Assume",
    "Atomic",
    "Await",
    "Both",
    "Buffer",
    "Cast",
    "Claim",
    "ClaimedProgram",
    "Commit",
    "Compare",
    "Copy",
    "Covers",
    "Distinct",
    "Edit",
    "Either",
    "Elem",
    "Equal",
    "Equals",
    "Fence",
    "File",
    "Fold",
    "For",
    "Get",
    "Holds",
    "If",
    "Kernel",
    "Launch",
    "Let",
    "Lit",
    "Map",
    "Mma",
    "Neither",
    "Num",
    "One",
    "Op",
    "Order",
    "Origin",
    "Peek",
    "Policy",
    "PolicyName",
    "Products",
    "Program",
    "Relation",
    "Reset",
    "Role",
    "Roles",
    "Staged",
    "Stmt",
    "Strided",
    "Sync",
    "Tag",
    "TagOf",
    "Test",
    "View",
    "Wait",
    "Where",
    "WrittenOnce",
    "ascending_condition",
    "axes_of",
    "bodies",
    "program_claims",
    "static",
    "trips",
    "walk",
    "whole",
    "with_bodies",
]
