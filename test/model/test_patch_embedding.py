"""The patch embedding as a convolution is the matrix product that it is by default."""

from __future__ import annotations

import pytest
import torch

from alpamayo_ros.model import AlpamayoR1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_forms_embed_patches_alike(quick_model: AlpamayoR1, dtype: torch.dtype) -> None:
    embed = quick_model.network.vlm.model.visual.patch_embed
    patches = torch.randn(
        7, embed.proj.weight[0].numel(), generator=torch.Generator().manual_seed(0)
    )
    product = embed(patches)
    embed.as_convolution = True
    try:
        torch.testing.assert_close(embed(patches.to(dtype)), product, atol=1e-5, rtol=0)
    finally:
        embed.as_convolution = False
