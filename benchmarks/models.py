"""Architectures of whole models with random weights: ResNet-50, ViT-B/16 and a decoder of GPT-2's size.

The first two are torchvision's where that is installed, and else the same layers, from their papers [He et al. 2016,
with the stride in the 3x3 convolution; Dosovitskiy et al. 2021]; the third is plain torch [Radford et al. 2019]. Each
also comes with few and narrow layers, which the interpreter runs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from attrs import frozen
from torch import Tensor, nn
from torch.nn import functional

F: Any = functional


class Bottleneck(nn.Module):
    """Convolutions of 1x1, 3x3 and 1x1, each with a batch norm, and a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.first = nn.Sequential(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        middle = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.second = nn.Sequential(middle, nn.BatchNorm2d(width), nn.ReLU())
        self.third = nn.Sequential(nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        plain = stride == 1 and channels == out
        across = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Identity() if plain else across

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.third(self.second(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    """blocks: of each of the stages, whose images have half the rows and columns of those before."""

    def __init__(self, blocks: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        stem = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.stem = nn.Sequential(stem, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        channels, made = width, list[nn.Module]()
        for stage, count in enumerate(blocks):
            for k in range(count):
                made.append(Bottleneck(channels, width << stage, 2 if stage and not k else 1))
                channels = 4 * (width << stage)
        self.stages = nn.Sequential(*made)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(self.pool(self.stages(self.stem(x))), 1))


class Attention(nn.Module):
    """Attention of several heads, with one product for queries, keys and values."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.into(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        found: Tensor = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(found.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """Attention and two products around GELU, each after a layer norm and added to its input."""

    def __init__(self, width: int, heads: int, causal: bool, eps: float, approximate: str) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.attention = Attention(width, heads, causal)
        into, out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.products = nn.Sequential(into, nn.GELU(approximate), out)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.one(x))
        return x + self.products(self.two(x))


class ViT(nn.Module):
    def __init__(
        self,
        image: int = 224,
        patch: int = 16,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2 + 1, width))
        self.layers = nn.Sequential(*(Layer(width, heads, False, 1e-6, "none") for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        found = self.patches(x).flatten(2).transpose(1, 2)
        found = torch.cat((self.token.expand(found.shape[0], -1, -1), found), 1) + self.places
        return self.head(self.norm(self.layers(found))[:, 0])


class GPT(nn.Module):
    """Layers of a decoder on embedded tokens, of which none follows: no table of words, no logits."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Layer(width, heads, True, 1e-5, "tanh") for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.layers(x))


@frozen
class Case:
    """A model in evaluation, and the shape of its input."""

    model: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def made(self, device: str = "cpu", dtype: torch.dtype = torch.float32, seed: int = 0) -> tuple[Any, Tensor]:
        """The model with random weights and statistics, and an input."""
        random: Any = torch
        random.manual_seed(seed)
        model = self.model().eval()
        for each in model.modules():
            if isinstance(each, nn.BatchNorm2d):
                nn.init.normal_(each.running_mean, std=0.1)  # pyright: ignore[reportArgumentType]  # it has one
                nn.init.uniform_(each.running_var, 0.5, 2.0)  # pyright: ignore[reportArgumentType]  # as above
        if isinstance(head := getattr(getattr(model, "heads", None), "head", None), nn.Linear):  # torchvision's is 0
            nn.init.normal_(head.weight, std=head.in_features**-0.5)
        _move(model, device, dtype)
        return model, torch.randn(self.shape).to(device, dtype)


def _move(model: nn.Module, device: str, dtype: torch.dtype) -> None:
    """As `model.to`, which does not take models of fake tensors."""
    for module in model.modules():
        for name, each in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(each.detach().to(device, dtype), requires_grad=each.requires_grad))
        for name, each in module.named_buffers(recurse=False):
            setattr(module, name, each.to(device, dtype if each.is_floating_point() else each.dtype))


def _torchvision(name: str, other: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    if find_spec("torchvision") is None:
        return other
    return getattr(import_module("torchvision.models"), name)


CASES: dict[str, Case] = {
    "resnet50": Case(_torchvision("resnet50", ResNet), (32, 3, 224, 224)),
    "vit_b_16": Case(_torchvision("vit_b_16", ViT), (32, 3, 224, 224)),
    "gpt2": Case(GPT, (8, 1024, 768)),
}
SMALL: dict[str, Case] = {
    "resnet": Case(lambda: ResNet((1, 1), 8, 10), (2, 3, 24, 24)),
    "vit": Case(lambda: ViT(16, 8, 1, 64, 2, 10), (2, 3, 16, 16)),
    "gpt": Case(lambda: GPT(1, 128, 2), (1, 16, 128)),
}
"""The same with few and narrow layers."""
