"""Tests of `tensor-layouts` that Argus fails on purpose: it refuses rightly, follows another documented convention, or
does not offer what is no layout algebra.

By `file.py::test`; each reason names the convention and who shares it. See docs/layouts.md and decision 0008.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Kind = Literal["refused rightly", "other convention", "out of scope"]


@frozen
class Deviation:
    kind: Kind
    reason: str


def _all(kind: Kind, reason: str, tests: str) -> dict[str, Deviation]:
    return dict.fromkeys(tests.split(), Deviation(kind, reason))


KNOWN: dict[str, Deviation] = {
    **_all(
        "refused rightly",
        "4 neither divides 6 nor is a multiple of it: no shape holds the first 4 elements of (6,2) and refines it",
        "layouts.py::test_shape_mod_non_divisible",
    ),
    **_all(
        "out of scope",
        "a model of memory whose banks, segments and lanes are parameters: `bank_conflicts` and `coalescing` of Argus "
        "take a target, and the phases and segments that its vendor documents",
        """
        composed.py::test_bank_conflicts_on_composed_layout
        composed.py::test_coalescing_efficiency_on_composed_layout
        composed.py::test_per_group_bank_conflicts_on_composed_layout
        composed.py::test_per_group_coalescing_on_composed_layout
        composed.py::test_segment_analysis_on_composed_layout
        """,
    ),
    **_all(
        "out of scope",
        "a plot by matplotlib; Argus draws other pictures, `grid`, `tv`, `banks`, `conflicts` and `swizzled`",
        "composed.py::test_draw_layout_and_draw_slice_smoke_for_composed_layout",
    ),
    **_all(
        "out of scope",
        "`tile_mma_grid` makes the cells of a plot of instructions that Argus has no targets for",
        """
        layouts.py::test_tile_mma_grid_exact_multiple_expands_a_panel_along_k
        layouts.py::test_tile_mma_grid_exact_multiple_expands_c_panel
        layouts.py::test_tile_mma_grid_rejects_incompatible_tile_mnk[A-tile_mnk3]
        layouts.py::test_tile_mma_grid_rejects_incompatible_tile_mnk[B-tile_mnk4]
        layouts.py::test_tile_mma_grid_rejects_incompatible_tile_mnk[C-tile_mnk0]
        layouts.py::test_tile_mma_grid_rejects_incompatible_tile_mnk[C-tile_mnk1]
        layouts.py::test_tile_mma_grid_rejects_incompatible_tile_mnk[C-tile_mnk2]
        """,
    ),
    **_all(
        "refused rightly",
        "a layout that repeats images has no R with R(A(i)) = i for all i; `pseudo_inverse` maps to the smallest index",
        """
        external.py::test_left_inverse_cpp_4d
        external.py::test_left_inverse_cpp_broadcast
        external.py::test_left_inverse_cpp_broadcast_middle
        external.py::test_left_inverse_cpp_deep_nested
        paper_examples.py::test_table6_left_inverse_broadcast_even_stride
        paper_examples.py::test_table6_left_inverse_broadcast_unit_stride
        """,
    ),
    **_all(
        "refused rightly",
        "extents are positive: a layout has at least one element, so that each result has an image of 0",
        """
        layouts.py::test_complement_rejects_zero_sized_shapes
        layouts.py::test_is_empty
        layouts.py::test_layout_rejects_negative_shape_extents
        """,
    ),
    **_all(
        "other convention",
        "the message of the refusal: the index at which no layout agrees, instead of the rule that fails",
        "paper_examples.py::test_s3_3_3_stride_violation_raises",
    ),
    **_all(
        "other convention",
        "an int is a tree of rank 1, and () has the depth 1, as in CuTe's int_tuple.hpp",
        """
        layouts.py::test_tuple_empty
        layouts.py::test_tuple_scalar
        """,
    ),
    **_all(
        "other convention",
        "`cosize` is one more than the largest image, also with negative strides and of a composed layout",
        """
        composed.py::test_composed_layout_boilerplate
        layouts.py::test_cosize_negative_stride_matches_cute
        """,
    ),
    **_all(
        "other convention",
        "`coalesce` and `filter` of a layout without modes are 1:0, as in CuTe",
        """
        layouts.py::test_coalesce_layouts
        layouts.py::test_layout_filter
        """,
    ),
    **_all(
        "other convention",
        "a mode of extent 1 keeps its stride, as in pycute: it counts where an index goes beyond the size",
        """
        layouts.py::test_concatenate_scalar_layouts
        layouts.py::test_layout_computed_strides
        layouts.py::test_logical_divide_canonicalizes_unit_extent_modes[layout0-1-expected0]
        """,
    ),
    **_all(
        "other convention",
        "the profile of `coalesce` names modes, not sizes, as in CuTe",
        "layouts.py::test_coalesce_by_mode_with_profile",
    ),
    **_all(
        "other convention",
        "a shape as cotarget counts by its size; CuTe rounds up mode by mode",
        "layouts.py::test_complement_layouts",
    ),
    **_all(
        "other convention",
        "below 0 the last mode goes on with floor division, as in pycute; CuTe truncates",
        "layouts.py::test_compose_negative_stride_matches_cute",
    ),
    **_all(
        "other convention",
        "`dice` and slices keep the rank: one mode left is a tuple of one, as in CuTe and pycute",
        """
        layouts.py::test_dice_modes_keep_one_mode
        layouts.py::test_dice_modes_scalar_coord
        tensor.py::test_fix_mode0_keep_mode1
        tensor.py::test_fix_mode1_keep_mode0
        tensor.py::test_fix_two_modes
        tensor.py::test_hierarchical_mode1
        tensor.py::test_row_major_fix_column
        tensor.py::test_row_major_fix_row
        """,
    ),
    **_all(
        "other convention",
        "modes kept inside a nested coordinate join the result flat, as in CuTe's underscore.hpp and pycute",
        """
        paper_examples.py::test_fig5_slice_inner_row_and_first_col_modes
        tensor.py::test_hierarchical_slice_preserves_structure
        """,
    ),
    **_all(
        "other convention",
        "a slice of a swizzled layout has the fixed coordinates inside, before the swizzle, as in CuTe",
        """
        layouts.py::test_offset_swizzled_layout_basic
        layouts.py::test_slice_and_offset_preserves_swizzle_for_partial_hierarchical_slice
        tensor.py::test_swizzled_hierarchical_partial_slice
        tensor.py::test_swizzled_sequential_slices
        tensor.py::test_swizzled_slice_column
        tensor.py::test_swizzled_slice_row
        tensor.py::test_swizzled_with_offset
        """,
    ),
    **_all(
        "other convention",
        "a swizzled layout is always a composed layout, and the inverse of S o A is (inverse of A) o S, as in CuTe",
        """
        composed.py::test_compose_layout_on_zero_preoffset_composed_layout_can_collapse
        composed.py::test_compose_layout_with_swizzle_rhs_keeps_representable_fast_path
        composed.py::test_left_inverse_of_zero_preoffset_swizzled_composed_layout
        composed.py::test_right_inverse_of_zero_preoffset_swizzled_composed_layout
        layouts.py::test_left_inverse_preserves_embedded_swizzle
        layouts.py::test_right_inverse_preserves_embedded_swizzle
        """,
    ),
    **_all(
        "other convention",
        "a swizzle as right operand has the size of one period, not that of the left operand",
        "composed.py::test_compose_layout_with_swizzle_rhs_falls_back_to_exact_composed_layout",
    ),
    **_all(
        "other convention",
        "a composed layout is a function of bits, too, where its images are: it has an F2 matrix",
        "composed.py::test_affine_only_boundaries_reject_composed_layout",
    ),
    **_all(
        "other convention",
        "an int as tiler is the layout n:1 of the whole, as in CuTe; only a tuple divides by mode",
        "layouts.py::test_divide_1d_tiler_on_2d_layout",
    ),
    **_all(
        "other convention",
        "`order` ranks the modes, as in CuTe: the mode of the least rank is fastest, ties go left to right",
        """
        layouts.py::test_make_ordered_layout_3d
        layouts.py::test_make_ordered_layout_rejects_invalid_order[order1]
        layouts.py::test_make_ordered_layout_rejects_invalid_order[order2]
        layouts.py::test_make_ordered_layout_rejects_invalid_order[order3]
        """,
    ),
    **_all(
        "other convention",
        "`tile_to_shape` pads the block's rank to that of the shape, as CuTe does",
        "layouts.py::test_tile_to_shape_rejects_target_rank_mismatch[target_shape1]",
    ),
    **_all(
        "other convention",
        "a tuple of tilers is a plain tuple",
        """
        layouts.py::test_tile_repr
        layouts.py::test_tile_type_checking
        """,
    ),
}
