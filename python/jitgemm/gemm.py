# SPDX-License-Identifier: Apache-2.0
"""Products under the module name that engines import them from."""

from ._dense import block_scaled_mm
from ._grouped import (
    batch_deepgemm_fp8_nt_groupwise,
    group_deepgemm_fp8_nt_groupwise,
    grouped_block_scaled_mm,
)

__all__ = [
    "block_scaled_mm",
    "grouped_block_scaled_mm",
    "group_deepgemm_fp8_nt_groupwise",
    "batch_deepgemm_fp8_nt_groupwise",
]
