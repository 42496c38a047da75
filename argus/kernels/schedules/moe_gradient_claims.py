"""What the gradients of a layer of experts are, as formulas of the layer's operands."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.epilogues import CUBIC, LINEAR
from argus.kernels.schedules.grouped_gated import Activation, activated
from argus.language import Int, Tensor, Value, assert_equals, elements, scalar, tanh, total


def slope(activation: Activation, x: Value) -> Value:
    """In a formula, the derivative of `activated`: of h (1 + tanh(p(h))), with h = x / 2, by the rules of calculus."""
    half = x * 0.5
    inner = half if activation == "silu" else half * (half * half * CUBIC + LINEAR)
    inward = 1.0 if activation == "silu" else half * half * (3 * CUBIC) + LINEAR
    bent = tanh(inner)
    return 0.5 * (1 + bent + half * (1 - bent * bent) * inward)


@frozen
class LayerGradients:
    """A layer of experts and G, the gradient of its result: of the sum over j of w[t, j] V[e](act(W[e, 0] x) W[e, 1] x)
    for each token's x = X[t], with e = ids[t, j]. weights: w in its order, as (tokens * choices,).
    """

    X: Tensor
    W: Tensor
    V: Tensor
    G: Tensor
    ids: Tensor
    weights: Tensor
    activation: Activation

    def claim(self, of_weights: Tensor, of_x: Tensor) -> None:
        """Claim the gradients of the weights, (tokens, choices), and of X, as those of this formula."""
        assert_equals(of_weights, self._of_weight)
        assert_equals(of_x, self._of_token)

    def _of_weight(self, t: Int, j: Int) -> Value:
        e = scalar(self.ids[t, j])

        def column(n: Int) -> Value:
            gate, up = self._both(t, e, n)
            return activated(self.activation, gate) * up * self._of_hidden(t, e, n)

        return total(column, over=self.W.shape[2])

    def _of_token(self, t: Int, k: Int) -> Value:
        w, weights, choices = elements(self.W), elements(self.weights), self.ids.shape[1]

        def chosen(j: Int) -> Value:
            e = scalar(self.ids[t, j])

            def column(n: Int) -> Value:
                gate, up = self._both(t, e, n)
                through_gate = up * slope(self.activation, gate) * w(e, 0, n, k)
                return self._of_hidden(t, e, n) * (through_gate + activated(self.activation, gate) * w(e, 1, n, k))

            return weights(t * choices + j) * total(column, over=self.W.shape[2])

        return total(chosen, over=choices)

    def _both(self, t: Int, e: Int, n: Int) -> tuple[Value, Value]:
        """What an expert multiplies: in its activation, and beside it."""
        x, w, depth = elements(self.X), elements(self.W), self.X.shape[1]
        return (
            total(lambda k: x(t, k) * w(e, 0, n, k), over=depth),
            total(lambda k: x(t, k) * w(e, 1, n, k), over=depth),
        )

    def _of_hidden(self, t: Int, e: Int, n: Int) -> Value:
        """The gradient of what an expert multiplies by V, for a factor of one."""
        g, v = elements(self.G), elements(self.V)
        return total(lambda k: g(t, k) * v(e, k, n), over=self.G.shape[1])
