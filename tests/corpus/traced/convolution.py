# verdict: proved
"""Convolution with padding as an implicit GEMM: the input is gathered, the mainloop is that of the GEMM."""

from typing import assert_never

from attrs import field, frozen

from argus.kernels.gemm import Cdna3, Cdna3PingPong, Contraction, cdna3_double_buffer, cdna3_pingpong
from argus.language import Tensor, assert_products, assume, bf16, every, kernel, tag, unflatten


@frozen
class Convolution:
    schedule: Cdna3 | Cdna3PingPong
    stride: int = 1
    pad: int = 1
    dilation: int = 1

    @property
    def target(self):
        return self.schedule.target

    @property
    def threads(self):
        return self.schedule.threads


def gemm(A, B, C, *, cfg):
    problem = Contraction(A, B, C)
    match cfg:
        case Cdna3():
            cdna3_double_buffer(problem, cfg)
        case Cdna3PingPong():
            cdna3_pingpong(problem, cfg)
        case _:
            assert_never(cfg)
    problem.finish()


@kernel(
    configs={
        "same": Convolution(Cdna3()),
        "strided": Convolution(Cdna3(), stride=2, pad=3),
        "dilated": Convolution(Cdna3PingPong(), pad=2, dilation=2),
    }
)
def conv2d(X: Tensor["B IH IW C", bf16], W: Tensor["O R S C", bf16], Y: Tensor["B P Q O", bf16], *, cfg):
    (batch, IH, IW, Cin), (Cout, R, S, _), (_, P, Q, _) = X.shape, W.shape, Y.shape
    stride, pad, dilation = cfg.stride, cfg.pad, cfg.dilation
    assume(Cin % 8 == 0, R >= 1, S >= 1, P >= 1, Q >= 1)  # rows of 16-byte vectors; no division by zero
    assume(batch * IH * IW * Cin <= (1 << 31) - 8, batch * P * Q * Cout <= (1 << 31) - 8)  # a buffer descriptor spans 4 GiB
    assume(R * S * Cin < 1 << 30)  # the loop counts past the last product

    def pixel(m, k):
        (b, p, q), (r, s, c) = unflatten(m, (batch, P, Q)), unflatten(k, (R, S, Cin))
        return b, p * stride + r * dilation - pad, q * stride + s * dilation - pad, c

    tag(X, lambda b, h, w, c: dict(b=b, c=c))  # the window position needs no tag of its own
    tag(W, lambda o, r, s, c: dict(o=o, c=c))
    A = X.gather((batch * P * Q, R * S * Cin), pixel, outside=0)  # a view like any other: predicate = inside X
    gemm(A, W.reshape(Cout, R * S * Cin), Y.reshape(batch * P * Q, Cout), cfg=cfg.schedule)
    assert_products(
        Y,
        lambda b, p, q, o: [
            ((b, p * stride + r * dilation - pad, q * stride + s * dilation - pad, c), (o, r, s, c))
            for r, s, c in every(R, S, Cin)
        ],
    )
