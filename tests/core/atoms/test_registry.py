"""Lookup of instructions by name, and thread-value layouts of their operands."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from argus.core.atom import Atom
from argus.core.atoms.registry import ATOMS, atom_named, thread_values
from argus.core.layout import TV, Layout, LayoutError


def test_names_are_unique() -> None:
    assert len({atom.name for atom in ATOMS}) == len(ATOMS)
    assert all(atom_named(atom.name) is atom for atom in ATOMS)


@pytest.mark.share(8)
@pytest.mark.parametrize("atom", ATOMS, ids=str)
def test_every_operand_has_a_view_that_holds_each_element_once(atom: Atom) -> None:
    """But what a matrix descriptor names is read by all, and lanes without a row of their own repeat an address."""
    for name in atom.operands:
        view = thread_values(atom.name, name)
        assert view.threads.size() == atom.unit
        held, count = np.unique(view.elements(), return_counts=True)
        assert held.tolist() == list(range(prod(view.tile)))
        read_by_all = atom.mnk is not None and atom.operands[name].space == "shared"
        rows = atom.name.startswith(("ldmatrix", "stmatrix")) and atom.operands[name].space == "shared"
        times = atom.unit if read_by_all else atom.unit * 8 // prod(view.tile) if rows else 1
        assert set(count.tolist()) == {times}


def test_an_operand_of_a_matrix_instruction() -> None:
    view = thread_values("mfma_f32_16x16x16_bf16", "c")
    assert view == TV(Layout((16, 4), (16, 4)), Layout(4, 1), (16, 16))
    assert thread_values(atom_named("mfma_f32_16x16x16_bf16"), "a", element_bits=16).tile == (16, 16)


def test_an_operand_of_a_copy_is_one_vector_per_lane() -> None:
    assert thread_values("ds_read_b128", "target", element_bits=16) == TV(Layout(64, 8), Layout(8, 1), (8, 64))
    assert thread_values("ds_read_b128", "source").tile == (128, 64)


def test_an_unknown_instruction_is_refused_with_names_like_it() -> None:
    with pytest.raises(LayoutError, match="no instruction is called `ds_read_b256`") as caught:
        thread_values("ds_read_b256", "source")
    assert caught.value.code == "E803"
    assert all(name in str(caught.value.diagnostic.help) for name in ("ds_read_b128", "ds_read_b64"))


def test_an_unknown_operand_is_refused_with_the_names() -> None:
    with pytest.raises(LayoutError, match="`ds_read_b64` has no operand `a`") as caught:
        thread_values("ds_read_b64", "a")
    assert caught.value.code == "E803"
    assert "source, target" in str(caught.value.diagnostic.help)


@pytest.mark.parametrize(
    ("atom", "operand", "bits", "message"),
    [
        ("mfma_f32_16x16x16_bf16", "c", 16, "has elements of 32 bits, not 16"),
        ("ds_read_b64", "source", 128, "moves 64 bits per lane"),
        ("ds_read_b64", "source", 24, "not a multiple of 24-bit elements"),
        ("ds_read_b64", "source", 0, "not a multiple of 0-bit elements"),
    ],
)
def test_elements_of_another_size_are_refused(atom: str, operand: str, bits: int, message: str) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        thread_values(atom, operand, element_bits=bits)
    assert caught.value.code == "E803"
