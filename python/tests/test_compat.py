# SPDX-License-Identifier: Apache-2.0
"""The drop-ins on the simulator: names, argument orders, layouts, and refusals."""

from __future__ import annotations

import inspect
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from products import Product, assert_close, draw

import jitgemm
from jitgemm import layouts
from jitgemm.compat import deep_gemm, flashinfer, vllm


@pytest.fixture
def p(rng: np.random.Generator) -> Product:
    return draw(rng, 5, 136, 272)


# What callers pass by position, by name, or leave out.
SIGNATURES = {
    deep_gemm.fp8_gemm_nt: "a b d c recipe recipe_a recipe_b compiled_dims disable_ue8m0_cast alpha",
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous: "a b d grouped_layout recipe recipe_a recipe_b compiled_dims "
    "disable_ue8m0_cast use_psum_layout ensure_zero_padding expected_m_for_psum_layout",
    deep_gemm.m_grouped_fp8_gemm_nt_masked: "a b d masked_m expected_m recipe recipe_a recipe_b compiled_dims "
    "disable_ue8m0_cast",
    deep_gemm.bf16_gemm_nt: "a b d c compiled_dims alpha",
    deep_gemm.m_grouped_bf16_gemm_nt_contiguous: "a b d grouped_layout compiled_dims use_psum_layout "
    "ensure_zero_padding expected_m_for_psum_layout",
    deep_gemm.m_grouped_bf16_gemm_nt_masked: "a b d masked_m expected_m compiled_dims",
    vllm.w8a8_block_fp8_matmul: "A B As Bs block_size output_dtype",
    vllm.per_token_group_quant_fp8: "x group_size eps dtype column_major_scales tma_aligned_scales out_q use_ue8m0",
    flashinfer.group_deepgemm_fp8_nt_groupwise: "a b a_scale b_scale m_indices scale_granularity_mnk out out_dtype",
    flashinfer.batch_deepgemm_fp8_nt_groupwise: "a b a_scale b_scale masked_m expected_m scale_granularity_mnk out "
    "out_dtype",
    flashinfer.gemm_fp8_nt_groupwise: "a b a_scale b_scale scale_major_mode mma_sm scale_granularity_mnk out "
    "out_dtype backend",
    flashinfer.fp8_blockscale_gemm_sm90: "input weight input_scale weight_scale out out_dtype",
    flashinfer.group_gemm_fp8_nt_groupwise: "a b a_scale b_scale m_indptr scale_granularity_mnk scale_major_mode "
    "mma_sm out out_dtype",
}


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__name__)
def test_arguments_are_in_the_order_that_callers_know(function: Any) -> None:
    assert " ".join(inspect.signature(function).parameters) == SIGNATURES[function]


def test_deep_gemm_writes_into_d(p: Product) -> None:
    d = np.zeros((5, 136), ml_dtypes.bfloat16)
    scales = deep_gemm.get_mn_major_tma_aligned_tensor(p.a_scales)
    assert deep_gemm.fp8_gemm_nt((p.a, scales), (p.b, p.b_scales), d) is None
    assert_close(d, p)
    d[:] = 0
    deep_gemm.fp8_gemm_nn((p.a, p.a_scales), (p.b.T, p.b_scales.T), d, recipe=(1, 128, 128))
    assert_close(d, p)


def test_deep_gemm_takes_packed_exponents(rng: np.random.Generator, arch: str) -> None:
    p = draw(rng, 5, 136, 272, group_n=1)
    p.a_scales = np.exp2(rng.integers(-3, 4, p.a_scales.shape)).astype(np.float32)
    p.b_scales = np.exp2(rng.integers(-3, 4, p.b_scales.shape)).astype(np.float32)
    d = np.zeros((5, 136), np.float32)
    pack = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor
    with jitgemm.simulator(arch):
        deep_gemm.fp8_gemm_nt((p.a, pack(p.a_scales)), (p.b, pack(p.b_scales)), d)
    assert_close(d, p)


def test_deep_gemm_multiplies_16_bits_without_scales(rng: np.random.Generator, arch: str) -> None:
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((11, 136), (2, 72, 136)))
    d = np.zeros((11, 72), np.float32)
    expected = [a.astype(np.float64) @ b[group].astype(np.float64).T for group in range(2)]
    with jitgemm.simulator(arch):
        deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, b, d, np.repeat([0, 1], [5, 6]).astype(np.int32))
        assert np.allclose(d, np.r_[expected[0][:5], expected[1][5:]], rtol=1e-5, atol=1e-3)
        deep_gemm.bf16_gemm_nt(a, b[0], d)
        assert np.allclose(d, expected[0], rtol=1e-5, atol=1e-3)


def test_vllm_flattens_leading_axes_and_defaults_to_half(p: Product) -> None:
    out = vllm.w8a8_block_fp8_matmul(p.a, p.b, p.a_scales, p.b_scales, [128, 128])
    assert out.dtype == np.float16
    assert_close(out, p)
    batched = vllm.w8a8_block_fp8_matmul(p.a[None], p.b, p.a_scales[None], p.b_scales, [128, 128], "bfloat16")
    assert batched.shape == (1, 5, 136)
    assert_close(batched[0], p)


def test_flashinfer_takes_both_scale_modes(p: Product) -> None:
    assert_close(flashinfer.gemm_fp8_nt_groupwise(p.a, p.b, p.a_scales, p.b_scales, "K"), p)
    transposed = np.ascontiguousarray(p.a_scales.T), np.ascontiguousarray(p.b_scales.T)
    assert_close(flashinfer.gemm_fp8_nt_groupwise(p.a, p.b, *transposed, scale_major_mode="MN"), p)


def test_flashinfer_repeats_block_scales_of_a(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    p.a_scales[:] = p.a_scales[:1]
    out = flashinfer.gemm_fp8_nt_blockscaled(p.a, p.b, p.a_scales[:1], p.b_scales, "K")
    assert_close(out, p)


def test_flashinfer_quantises_an_input_that_is_not_fp8(rng: np.random.Generator, p: Product) -> None:
    assert_close(flashinfer.fp8_blockscale_gemm_sm90(p.a, p.b, p.a_scales, p.b_scales), p)
    x = rng.standard_normal(p.a.shape).astype(ml_dtypes.bfloat16)
    p.a, p.a_scales = jitgemm.per_token_cast_to_fp8(x)
    assert_close(flashinfer.fp8_blockscale_gemm_sm90(x, p.b, weight_scale=p.b_scales), p)
    with pytest.raises(jitgemm.Unsupported, match="weight_scale"):
        flashinfer.fp8_blockscale_gemm_sm90(x, x)


def test_deep_gemm_adds_c_and_multiplies_by_alpha(rng: np.random.Generator, p: Product) -> None:
    a, b = (p.a, p.a_scales), (p.b, p.b_scales)
    plain, d = np.zeros((5, 136), np.float32), np.zeros((5, 136), np.float32)
    deep_gemm.fp8_gemm_nt(a, b, plain)
    c = rng.standard_normal((5, 136)).astype(np.float32)
    deep_gemm.fp8_gemm_nt(a, b, d, c=c, alpha=0.5)
    assert (d == np.float32(0.5) * plain + c).all()
    deep_gemm.fp8_gemm_nt(a, b, d, c=d)
    assert (d == plain + (np.float32(0.5) * plain + c)).all()
    with pytest.raises(jitgemm.InvalidArgument, match=r"c: expected shape \[5, 136\]"):
        deep_gemm.fp8_gemm_nt(a, b, d, c=d[:1])


def test_deep_gemm_takes_operands_in_any_order(p: Product) -> None:
    across = np.ascontiguousarray(p.a.T), np.ascontiguousarray(p.a_scales.T)
    down = np.ascontiguousarray(p.b.T), np.ascontiguousarray(p.b_scales.T)
    for call, a, b in (
        (deep_gemm.fp8_gemm_nn, (p.a, p.a_scales), down),
        (deep_gemm.fp8_gemm_tn, across, down),
        (deep_gemm.fp8_gemm_tt, across, (p.b, p.b_scales)),
    ):
        d = np.zeros((5, 136), np.float32)
        call(a, b, d)
        assert_close(d, p)


def test_deep_gemm_repeats_scales_that_rows_share(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    shared = p.a_scales[::2].copy()
    p.a_scales = np.repeat(shared, 2, 0)[:5]
    d = np.zeros((5, 136), np.float32)
    deep_gemm.fp8_gemm_nt((p.a, shared), (p.b, p.b_scales), d, recipe=(2, 128, 128))
    assert_close(d, p)
    with pytest.raises(jitgemm.InvalidArgument, match="a_scales: expected 3 rows"):
        deep_gemm.fp8_gemm_nt((p.a, p.a_scales), (p.b, p.b_scales), d, recipe=(2, 128, 128))


def test_deep_gemm_zeroes_what_lies_between_groups(rng: np.random.Generator) -> None:
    p = draw(rng, 40, 136, 272)
    d = np.full((40, 136), 7, np.float32)
    operands = (p.a, p.a_scales), (np.stack([p.b, p.b]), np.stack([p.b_scales, p.b_scales]))
    deep_gemm.set_mk_alignment_for_contiguous_layout(16)
    try:
        ends = np.array([9, 20], np.int32)
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(*operands, d, ends, use_psum_layout=True)
        assert_close(d[16:20], Product(p.a[16:20], p.b, p.a_scales[16:20], p.b_scales))
        assert (d[9:16] == 0).all()
        assert (d[20:] == 0).all()
        d[:] = 7
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(*operands, d, ends, use_psum_layout=True, ensure_zero_padding=False)
        assert (d[9:16] == 7).all()
    finally:
        deep_gemm.set_mk_alignment_for_contiguous_layout(128)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p, d: deep_gemm.k_grouped_fp8_gemm_nt_contiguous(), "groups along k"),
        (lambda p, d: deep_gemm.set_pdl(True), "pdl"),
        (lambda p, d: flashinfer.gemm_fp8_nt_groupwise(p.a, p.b, p.a_scales, p.b_scales, backend="trtllm"), "backend"),
    ],
)
def test_what_would_have_to_be_ignored_is_refused(p: Product, call: Any, words: str) -> None:
    with pytest.raises(jitgemm.Unsupported, match=words):
        call(p, np.zeros((5, 136), np.float32))


def test_scales_with_rows_contiguous_are_aligned_to_16_bytes(rng: np.random.Generator) -> None:
    scales = rng.random((2, 5, 3), np.float32)
    found = deep_gemm.get_mn_major_tma_aligned_tensor(scales)
    assert found.shape == scales.shape
    assert [step // 4 for step in found.strides] == [24, 1, 8]
    assert (found == scales).all()
    assert deep_gemm.get_mn_major_tma_aligned_tensor(found) is found
    assert deep_gemm.get_tma_aligned_size(5, 4) == 8
    assert deep_gemm.get_tma_aligned_size(5, 1) == 16


def test_exponents_are_packed_four_to_a_word_and_only_of_powers_of_two(rng: np.random.Generator) -> None:
    exponents = rng.integers(-126, 128, (5, 6))
    packed = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor(np.exp2(exponents).astype(np.float32))
    assert packed.shape == (5, 2)
    assert [step // 4 for step in packed.strides] == [1, 8]
    found = np.ascontiguousarray(packed).view(np.uint8).reshape(5, 8)
    assert (found[:, :6] == exponents + 127).all()
    assert (layouts.unpack_exponents(packed, 6) == np.exp2(exponents)).all()
    every = np.arange(256, dtype=np.int32).reshape(1, 256)
    words = (every[:, ::4] | every[:, 1::4] << 8 | every[:, 2::4] << 16 | every[:, 3::4] << 24).astype(np.int32)
    assert np.array_equal(
        layouts.unpack_exponents(words, 256)[0], np.exp2(np.r_[np.arange(-127.0, 128), np.nan]), equal_nan=True
    )
    for wrong in (1.5, 0.0, -2.0, np.inf, np.nan):
        with pytest.raises(jitgemm.InvalidArgument, match="expected positive powers of two"):
            layouts.pack_exponents(np.full((1, 1), wrong, np.float32))


def test_alignment_of_contiguous_layouts_is_a_setting() -> None:
    assert deep_gemm.get_m_alignment_for_contiguous_layout() == 128
    deep_gemm.set_mk_alignment_for_contiguous_layout(32)
    try:
        assert deep_gemm.get_mk_alignment_for_contiguous_layout() == 32
    finally:
        deep_gemm.set_mk_alignment_for_contiguous_layout(128)
    found = [deep_gemm.get_theoretical_mk_alignment_for_contiguous_layout(m) for m in (None, 1, 8, 9, 60, 400)]
    assert found == [128, 8, 8, 16, 64, 128]


def test_quantisers_have_their_projects_defaults(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 256)).astype(np.float32)
    x[0] = 0
    _, scales = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=True)
    assert (np.frexp(scales)[0] == 0.5).all()
    _, scales = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
    assert scales[0, 0] == np.float32(1e-4 / 448)
    codes, scales = vllm.per_token_group_quant_fp8(x, 128, column_major_scales=True)
    assert scales.shape == (3, 2)
    assert scales.strides == (4, 12)
    assert codes.shape == x.shape
    assert vllm.per_block_cast_to_fp8(x)[1].shape == (1, 2)


def test_the_difference_of_equal_arrays_is_zero(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4)).astype(np.float32)
    assert abs(deep_gemm.calc_diff(x, x)) < 1e-15
    assert deep_gemm.calc_diff(x, -x) == pytest.approx(2)
