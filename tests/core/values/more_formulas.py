"""Formulas of norms, losses, scans, masks, pooling and merges, as `formulas` has those of softmax."""

from __future__ import annotations

from fractions import Fraction

from argus.core import algebra
from argus.core.algebra import IndexLike, add, eq, le, lt, minimum, mul, sub
from argus.core.values.expr import Compare, Expr, choose, compare, element, expr, fn, infinity
from tests.core.values.formulas import (
    ALL,
    BOTH,
    NEXT,
    NONE,
    B,
    C,
    Case,
    Formula,
    J,
    K,
    N,
    Q,
    R,
    T,
    along,
    exp,
    greatest,
    half,
    least,
    log,
    mean,
    product,
    size,
    total,
    v,
    v_c,
    whole,
    x,
)


def _squared_from(m: Expr) -> Formula:
    return along(lambda j: (x(j) - m) * (x(j) - m))


def norm_cases() -> dict[str, Case]:
    eps = element("eps")
    squares = total(0, N, lambda j: x(j) * x(j))
    meant = total(0, N, lambda j: (x(j) - mean) * (x(j) - mean))
    n_a, n_b = mul(K, B), B
    mean_a, mean_b = total(*J, x) / n_a, total(*NEXT, x) / n_b
    m2_a, m2_b = (total(*each, _squared_from(m)) for each, m in ((J, mean_a), (NEXT, mean_b)))
    both = total(*BOTH, x) / BOTH[1]
    delta = mean_b - mean_a
    merged = m2_a + m2_b + delta * delta * expr(n_a) * n_b / (expr(n_a) + n_b)
    unweighted = m2_a + m2_b + delta * delta
    known = (lt(0, K), lt(0, mul(K, B)))
    one = x(K)
    old = total(0, K, x) / K
    new = old + (one - old) / (expr(K) + 1)
    m2 = total(0, K, lambda j: (x(j) - old) * (x(j) - old))
    after = total(0, add(K, 1), x) / add(K, 1)

    def group(i: IndexLike, j: IndexLike) -> Expr:
        return element("X", R, add(mul(i, T), j))

    return {
        "RMS norm, two spellings": Case(
            v_c * fn("rsqrt", squares / N + 1), v_c / fn("sqrt", squares / N + 1), v_c * fn("rsqrt", squares + 1)
        ),
        "RMS norm by a power": Case(
            v_c * fn("pow", squares / N + 1, Fraction(-1, 2)),
            v_c / fn("sqrt", (1 + squares / N)),
            v_c * fn("pow", squares / N + 1, half),
        ),
        "total / N": Case(total(0, N, x) * fn("reciprocal", N), mean, total(0, N, x) / 256),
        "variance, E x2 - mean2": Case(squares / N - mean * mean, meant / N, squares / N - mean),
        "layer norm": Case(
            (v_c - mean) * fn("rsqrt", meant / N + eps * eps + 1),
            (v_c - mean) / fn("sqrt", squares / N - mean * mean + 1 + eps * eps),
            (v_c - mean) * fn("rsqrt", meant + eps * eps + 1),
        ),
        "Chan merge": Case(merged, total(*BOTH, lambda j: (x(j) - both) * (x(j) - both)), unweighted, known),
        "Welford, mean": Case(new, after, old + (one - old) / K, (lt(0, K),)),
        "Welford, sum of squares": Case(
            m2 + (one - old) * (one - new),
            total(0, add(K, 1), lambda j: (x(j) - after) * (x(j) - after)),
            m2 + (one - old) * (one - old),
            (lt(0, K),),
        ),
        "(v + 1) * s - s": Case(
            (v_c + 1) * total(0, N, x) - total(0, N, x), v_c * total(0, N, x), (v_c + 1) * total(0, N, x) - mean
        ),
        "sum of v * tanh v": Case(
            v_c * total(0, N, lambda j: x(j) * fn("tanh", x(j))),
            total(0, N, lambda j: fn("tanh", x(j)) * x(j)) * v_c,
            v_c * total(0, N, lambda j: x(j) * fn("tanh", x(C))),
        ),
        "v - row minimum": Case(
            v_c - fn("min", ALL, least(0, N, x)), v_c - least(0, N, x), v_c - fn("min", 0, least(0, N, x))
        ),
        "sum of squares of differences": Case(
            squares
            - 2 * total(0, N, lambda j: x(j) * element("Y", j))
            + total(0, N, lambda j: element("Y", j) * element("Y", j)),
            total(0, N, lambda j: (x(j) - element("Y", j)) * (x(j) - element("Y", j))),
            squares
            - total(0, N, lambda j: x(j) * element("Y", j))
            + total(0, N, lambda j: element("Y", j) * element("Y", j)),
        ),
        "GroupNorm over two launches": Case(
            total(0, N, lambda i: total(0, T, lambda j: group(i, j))) / (expr(N) * T),
            total(0, mul(N, T), x) / mul(N, T),
            total(0, N, lambda i: total(0, T, lambda j: group(i, j))) / N,
        ),
        "GELU by tanh and by a sigmoid": Case(
            half * v_c * (1 + fn("tanh", half * v_c)), v_c * fn("sigmoid", v_c), half * v_c * (1 + fn("tanh", v_c))
        ),
    }


def element_cases() -> dict[str, Case]:
    cos, sin = fn("cos", element("angle", C)), fn("sin", element("angle", C))
    other = element("X", R, add(C, size("H")))
    s = element("scale", R)
    return {
        "leaky ReLU by where": Case(
            choose(compare("<", 0, v_c), v_c, v_c / 10),
            fn("max", v_c, v_c / 10),
            choose(compare("<", 0, v_c), v_c, -v_c / 10),
        ),
        "|x| by relu": Case(fn("relu", v_c) + fn("relu", -v_c), fn("abs", v_c), fn("relu", v_c) - fn("relu", -v_c)),
        "clamp": Case(
            fn("min", fn("max", v_c, -1), 1), fn("max", fn("min", v_c, 1), -1), fn("max", fn("min", v_c, 1), 0)
        ),
        "max of shifted values": Case(
            fn("max", v_c + s, x(Q) + s) - s, fn("max", v_c, x(Q)), fn("max", v_c + s, x(Q)) - s
        ),
        "RoPE": Case(fn("fma", v_c, cos, -(other * sin)), v_c * cos - other * sin, v_c * cos + other * sin),
        "quantise and dequantise": Case(
            fn("round", v_c * fn("reciprocal", s)) * s, s * fn("round", v_c / s), fn("round", v_c / s) / s
        ),
        "dequantised product": Case(
            total(0, N, lambda j: x(j) * element("W", j)) * s * element("scale", Q),
            total(0, N, lambda j: (x(j) * s) * (element("W", j) * element("scale", Q))),
            total(0, N, lambda j: x(j) * element("W", j)) * s * s,
        ),
        "SiLU": Case(v_c / (1 + exp(-v_c)), v_c * fn("sigmoid", v_c), v_c / (1 + exp(v_c))),
        "softplus": Case(log(1 + exp(v_c)), v_c + log(1 + exp(-v_c)), log(1 + exp(-v_c))),
        "NaN-free max: the other operand": Case(fn("max", v_c, NONE), v_c, fn("max", v_c, 0)),
    }


def loop_cases() -> dict[str, Case]:
    gate = along(lambda j: element("gate", j))
    q = along(lambda c: element("Qm", Q, c))

    def k(j: IndexLike, c: IndexLike) -> Expr:
        return element("Km", j, c)

    def split(low: IndexLike, high: IndexLike) -> Expr:
        return total(low, high, lambda j: element("A", R, j) * element("W", C, j))

    def carried(high: IndexLike) -> Expr:
        return total(0, high, lambda j: x(j) * fn("pow", fn("sigmoid", element("a")), sub(sub(high, 1), j)))

    def gated(high: IndexLike) -> Expr:
        return total(0, high, lambda j: x(j) * product(add(j, 1), high, gate))

    def chunk(low: IndexLike, high: IndexLike) -> Expr:
        return total(low, high, lambda j: total(0, N, lambda c: q(c) * k(j, c)) * v(j))

    state = total(0, N, lambda c: q(c) * total(*J, lambda j: k(j, c) * v(j)))
    decay = fn("sigmoid", element("a"))
    return {
        "split-K": Case(
            split(0, mul(K, B)) + split(mul(K, B), N),
            split(0, N),
            split(0, mul(K, B)) + split(mul(add(K, 1), B), N),
            (le(mul(K, B), N),),
        ),
        "blocks of elements": Case(
            total(0, T, lambda i: total(0, B, lambda j: element("X", R, add(mul(i, B), j)))),
            total(0, mul(T, B), x),
            total(0, T, lambda i: total(0, B, lambda j: element("X", R, add(i, j)))),
        ),
        "blocks with a tail": Case(
            total(
                0,
                algebra.ceil_div(N, 32),
                lambda i: total(
                    0, 32, lambda j: element("X", R, add(mul(i, 32), j)), lambda j: lt(add(mul(i, 32), j), N)
                ),
            ),
            total(0, minimum(mul(algebra.ceil_div(N, 32), 32), N), x),
            total(0, algebra.ceil_div(N, 32), lambda i: total(0, 32, lambda j: element("X", R, add(mul(i, 32), j)))),
        ),
        "backwards": Case(
            total(0, N, lambda j: x(sub(sub(N, 1), j))), total(0, N, x), total(0, N, lambda j: x(sub(N, j)))
        ),
        "shifted loop": Case(
            total(1, add(N, 1), lambda j: x(sub(j, 1))), total(0, N, x), total(1, N, lambda j: x(sub(j, 1)))
        ),
        "peeled first iteration": Case(x(0) + total(1, N, x), total(0, N, x), x(0) + total(0, N, x)),
        "carried decay, step": Case(carried(K) * decay + x(K), carried(add(K, 1)), carried(K) + x(K)),
        "gated recurrence, step": Case(gated(K) * gate(K) + x(K), gated(add(K, 1)), gated(K) + gate(K) * x(K)),
        "linear attention, chunked": Case(state + chunk(*NEXT), chunk(*BOTH), state + chunk(*J)),
        "product of a row": Case(
            product(*J, x) * product(*NEXT, x), product(*BOTH, x), product(*J, x) + product(*NEXT, x)
        ),
        "product with padding 1": Case(
            product(*BOTH, lambda j: choose(lt(j, mul(K, B)), x(j), 1)) * 1,
            product(*BOTH, lambda j: choose(lt(j, mul(K, B)), x(j), 1)),
            product(*BOTH, lambda j: choose(lt(j, mul(K, B)), x(j), 0)),
        ),
        "sums in the other order": Case(
            total(0, N, lambda i: total(0, T, lambda j: element("Z", i, j))),
            total(0, T, lambda j: total(0, N, lambda i: element("Z", i, j))),
            total(0, T, lambda j: total(0, T, lambda i: element("Z", i, j))),
        ),
        "product of sums": Case(
            total(0, N, lambda i: total(0, T, lambda j: x(i) * element("Y", j))),
            total(0, N, x) * total(0, T, lambda j: element("Y", j)),
            total(0, N, x) * total(0, N, lambda j: element("Y", j)),
        ),
        "telescoping": Case(total(0, N, lambda j: x(add(j, 1)) - x(j)), x(N) - x(0), x(N) - x(1)),
    }


def mask_cases() -> dict[str, Case]:
    score = along(lambda j: element("S", Q, j))
    masked = along(lambda j: choose(le(j, Q), score(j), NONE))
    top = greatest(0, N, masked)
    causal = total(0, N, lambda j: exp(masked(j) - top) * v(j)) / total(0, N, lambda j: exp(masked(j) - top))
    meant = total(0, minimum(N, add(Q, 1)), lambda j: exp(score(j)) * v(j)) / total(
        0, minimum(N, add(Q, 1)), lambda j: exp(score(j))
    )

    def keep(j: IndexLike) -> Compare:
        return compare("<=", element("t", R), x(j))

    kept = total(*J, lambda j: choose(keep(j), exp(x(j)), 0)) + total(*NEXT, lambda j: choose(keep(j), exp(x(j)), 0))

    def guarded(m: Expr) -> Expr:
        return choose(compare("==", m, infinity(-1)), 0, m)

    old = greatest(*J, masked)
    now = fn("max", old, greatest(*NEXT, masked))

    def step(g_old: Expr, g_new: Expr, owed: Expr) -> Expr:
        return total(*J, lambda j: exp(masked(j) - g_old)) * owed + total(*NEXT, lambda j: exp(masked(j) - g_new))

    good = step(guarded(old), guarded(now), exp(old - guarded(now)))
    bad = step(guarded(old), guarded(now), exp(guarded(now) - old))
    label = size("label", 0)
    nll = total(0, N, lambda j: choose(eq(j, label), x(j), 0))
    lse = log(whole) + greatest(0, N, x)
    smooth = element("eps")
    pooled = greatest(0, T, lambda j: choose(lt(add(C, j), N), element("X", R, add(C, j)), NONE))
    return {
        "causal attention by a mask": Case(
            causal,
            meant,
            total(0, N, lambda j: exp(masked(j) - top) * v(j)) / total(0, N, lambda j: exp(score(j) - top)),
        ),
        "guarded maximum, step with empty rows": Case(good, total(*BOTH, lambda j: exp(masked(j) - guarded(now))), bad),
        "top-k by a threshold": Case(
            kept,
            total(*BOTH, lambda j: choose(keep(j), exp(x(j)), 0)),
            total(*J, lambda j: choose(keep(j), exp(x(j)), 0)) + total(*NEXT, lambda j: exp(x(j))),
        ),
        "cross entropy": Case(
            lse - nll, log(total(0, N, lambda j: exp(x(j)))) - element("X", R, label), lse + nll, (lt(label, N),)
        ),
        "cross entropy with label smoothing": Case(
            (lse - nll) * (1 - smooth) + smooth * (lse - mean),
            log(total(0, N, lambda j: exp(x(j)))) - (1 - smooth) * element("X", R, label) - smooth * mean,
            (lse - nll) * (1 - smooth) + smooth * (lse - total(0, N, x)),
            (lt(label, N),),
        ),
        "mean over labels that count": Case(
            total(0, T, lambda i: choose(eq(algebra.read("label", (i,)), 0), 0, element("L", i)))
            / total(0, T, lambda i: choose(eq(algebra.read("label", (i,)), 0), 0, 1)),
            total(0, T, lambda i: element("L", i), lambda i: algebra.negate(eq(algebra.read("label", (i,)), 0)))
            / total(0, T, lambda _: 1, lambda i: algebra.negate(eq(algebra.read("label", (i,)), 0))),
            total(0, T, lambda i: element("L", i)) / T,
        ),
        "max pooling with padding": Case(
            pooled,
            greatest(C, minimum(add(C, T), N), x),
            greatest(0, T, lambda j: choose(lt(add(C, j), N), element("X", R, add(C, j)), 0)),
            (lt(C, N),),
        ),
        "average pooling with padding": Case(
            total(0, T, lambda j: choose(lt(add(C, j), N), element("X", R, add(C, j)), 0)) / T,
            total(C, minimum(add(C, T), N), x) / T,
            total(0, T, lambda j: element("X", R, add(C, j))) / T,
            (lt(C, N), le(C, minimum(add(C, T), N)), le(C, N)),
        ),
        "logical all by a product": Case(
            product(*J, lambda j: choose(compare("<", 0, x(j)), 1, 0))
            * product(*NEXT, lambda j: choose(compare("<", 0, x(j)), 1, 0)),
            product(*BOTH, lambda j: choose(compare("<", 0, x(j)), 1, 0)),
            product(*J, lambda j: choose(compare("<", 0, x(j)), 1, 0)),
        ),
        "logical any by a maximum": Case(
            fn(
                "max",
                greatest(0, mul(add(K, 1), B), lambda j: choose(compare("<", 0, x(j)), 1, 0)),
                greatest(mul(add(K, 1), B), mul(add(K, 2), B), lambda j: choose(compare("<", 0, x(j)), 1, 0)),
            ),
            greatest(0, mul(add(K, 2), B), lambda j: choose(compare("<", 0, x(j)), 1, 0)),
            greatest(0, mul(add(K, 1), B), lambda j: choose(compare("<", 0, x(j)), 1, 0)),
        ),
        "split-KV merge": _merge(),
        "row maximum with -inf padding": Case(
            greatest(0, mul(T, B), lambda j: choose(lt(j, N), x(j), NONE)),
            greatest(0, N, x),
            greatest(0, mul(T, B), lambda j: choose(lt(j, N), x(j), 0)),
            (le(N, mul(T, B)),),
        ),
    }


def _merge() -> Case:
    """The merge of two partial (output, log-sum-exp) pairs."""
    f = along(lambda j: element("S", Q, j))
    cut = add(mul(K, B), 1)
    parts = [(0, cut), (cut, add(cut, B))]
    sums = [total(*part, lambda j: exp(f(j))) for part in parts]
    outs = [total(*part, lambda j: exp(f(j)) * v(j)) / s for part, s in zip(parts, sums, strict=True)]
    lses = [log(s) for s in sums]
    top = fn("max", *lses)
    weights = [exp(each - top) for each in lses]
    held = (outs[0] * weights[0] + outs[1] * weights[1]) / (weights[0] + weights[1])
    meant = total(0, add(cut, B), lambda j: exp(f(j)) * v(j)) / total(0, add(cut, B), lambda j: exp(f(j)))
    wrong = (outs[0] * weights[1] + outs[1] * weights[0]) / (weights[0] + weights[1])
    return Case(held, meant, wrong)
