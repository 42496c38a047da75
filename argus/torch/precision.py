"""How exact products of f32 are to be, as torch is set when a graph is compiled."""

from __future__ import annotations

from typing import Any

import torch

from argus.ops.choice_f32 import PRODUCTS


def products_of_convolutions() -> int:
    """The products of bf16 parts of a product of f32 in convolutions.

    Three where torch may round their operands to TF32, which is its default
    (`torch.backends.cudnn.conv.fp32_precision`): operands then keep 16 significant bits, where TF32 has 11. Else six.
    """
    cudnn: Any = torch.backends.cudnn
    return PRODUCTS["high" if cudnn.conv.fp32_precision == "tf32" else "highest"]
