"""Small modules that vision, language and expert share; the table of operators computes them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from alpamayo_ros.devices.operators import Operators


class Linear(nn.Linear):
    """A linear layer whose product is the operators'."""

    def __init__(self, inputs: int, outputs: int, operators: Operators, bias: bool = False) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.operators = operators

    def forward(self, x: Tensor) -> Tensor:
        """x (..., inputs) to (..., outputs)."""
        return self.operators.linear(x, self.weight, self.bias)


class StackedLinear:
    """Several bias-free Linear layers over one input, computed as one product.

    The layers keep their names and parameters; `merge` moves these into one matrix that they
    then share. Unmerged, the matrix is put together at each call, so that gradients flow.
    """

    def __init__(self, *layers: Linear) -> None:
        self.layers = layers
        self.merged: Tensor | None = None

    def merge(self) -> None:
        """Make one matrix of the weights, for inference."""
        merged = torch.cat([layer.weight.data for layer in self.layers])
        rows = merged.split([layer.out_features for layer in self.layers])
        for layer, row in zip(self.layers, rows):
            layer.weight.data = row
        self.merged = merged

    def cast(self, change: Callable[[Tensor], Tensor]) -> None:
        """Keep nothing but the merged matrix, in the form that `change` gives it."""
        assert self.merged is not None
        self.merged = change(self.merged)
        for layer in self.layers:
            layer.register_parameter("weight", None)

    def __call__(self, x: Tensor) -> Tensor:
        """x (..., in) to (..., sum of outs), one layer's output after the other."""
        weight = self.merged
        if weight is None:
            weight = torch.cat([layer.weight for layer in self.layers])
        return self.layers[0].operators.linear(x, weight, None)


class RMSNorm(nn.Module):
    """Root-mean-square norm with a weight."""

    def __init__(self, width: int, eps: float, operators: Operators) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps
        self.operators = operators

    def forward(self, x: Tensor) -> Tensor:
        """x (..., width), normalised, in the weight's type."""
        return self.operators.rms_norm(x, self.weight, self.eps)

    def after_adding(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """(the norm of residual + x, residual + x); the sum keeps the residual's type."""
        return self.operators.add_rms_norm(x, residual, self.weight, self.eps)


def empty_embedding(rows: int, width: int) -> nn.Embedding:
    """A table without initial values: drawing them on the meta device takes 1.7 s of imports."""
    return nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)
