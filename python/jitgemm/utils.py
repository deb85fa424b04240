# SPDX-License-Identifier: Apache-2.0
"""The quantisers under the module name that callers of grouped products import them from."""

from .quantize import per_block_cast_to_fp8, per_token_cast_to_fp8

__all__ = ["per_block_cast_to_fp8", "per_token_cast_to_fp8"]
