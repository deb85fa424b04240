# SPDX-License-Identifier: Apache-2.0
"""block_scaled_mm of numpy arrays on the simulator, its sanitizer on, against float64."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from products import E4M3, E5M2, Guarded, Product, assert_close, draw

import jitgemm


def run(p: Product, arch: str, out: Any = None, **options: Any) -> Any:
    with jitgemm.simulator(arch, sanitize=True):
        return jitgemm.block_scaled_mm(
            p.a, p.b, p.a_scales, p.b_scales, out, group_n=p.group_n, group_k=p.group_k, **options
        )


@pytest.mark.parametrize(
    ("m", "n", "k", "options"),
    [
        (5, 136, 272, {}),  # tails everywhere
        (70, 128, 256, {"group_n": 64}),
        (3, 64, 160, {"group_n": 1, "group_k": 32, "a_dtype": E5M2}),
        (2, 33, 65, {"b_dtype": E5M2}),  # rows that TMA cannot address
    ],
    ids=["tails", "group_n 64", "group_k 32, e5m2", "odd rows"],
)
def test_a_new_array_is_the_product(rng: np.random.Generator, arch: str, m: int, n: int, k: int, options: Any) -> None:
    p = draw(rng, m, n, k, **options)
    out = run(p, arch)
    assert out.dtype == ml_dtypes.bfloat16
    assert out.shape == (m, n)
    assert_close(out, p)


@pytest.mark.parametrize("dtype", [np.float32, "float16", ml_dtypes.bfloat16, "BF16"])
def test_out_dtype_may_be_a_name_or_a_type(rng: np.random.Generator, arch: str, dtype: Any) -> None:
    p = draw(rng, 5, 136, 272)
    out = run(p, arch, out_dtype=dtype)
    assert out.dtype == (ml_dtypes.bfloat16 if dtype == "BF16" else np.dtype(dtype))
    assert_close(out, p)


def test_a_given_out_is_returned_and_nothing_around_it_is_written(rng: np.random.Generator, arch: str) -> None:
    p = draw(rng, 5, 136, 272)
    guarded = {
        "a": Guarded(p.a.shape, E4M3, 288),
        "b": Guarded(p.b.shape, E4M3, 320),
        "a_scales": Guarded(p.a_scales.shape, np.float32, 5),
        "b_scales": Guarded(p.b_scales.shape, np.float32, 7),
    }
    for name, guard in guarded.items():
        guard.array[:] = getattr(p, name)
    p = dataclasses.replace(p, **{name: guard.array for name, guard in guarded.items()})
    out = Guarded((5, 136), np.float32, 144)
    assert run(p, arch, out.array) is out.array
    assert_close(out.array, p)
    assert out.intact()
    assert all(guard.intact() for guard in guarded.values())


def test_scales_may_have_either_order_and_addresses_any_alignment(rng: np.random.Generator, arch: str) -> None:
    p = draw(rng, 5, 136, 272)
    columns = Guarded((p.a_scales.shape[1], 8), np.float32)  # rows contiguous, columns 8 apart
    columns.array[:, :5] = p.a_scales.T
    shifted = Guarded(p.a.shape, E4M3, 272, offset=67)
    shifted.array[:] = p.a
    changed = dataclasses.replace(
        p, a=shifted.array, a_scales=columns.array[:, :5].T, b_scales=np.asfortranarray(p.b_scales)
    )
    assert_close(run(changed, arch, out_dtype="float32"), p)


def test_policies_of_m_agree_and_a_batch_does_not_change_a_row(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    exact = run(p, "sm_90a")
    for policy in ("class", "any"):
        assert_close(run(p, "sm_90a", m_policy=policy), p)
    whole = run(p, "sm_90a", m_policy="any", batch_invariant=True)
    part = dataclasses.replace(p, a=p.a[:2], a_scales=p.a_scales[:2])
    assert (run(part, "sm_90a", m_policy="any", batch_invariant=True) == whole[:2]).all()
    assert exact.shape == whole.shape


def test_powers_of_two_are_applied_by_the_tensor_core_as_floats_or_as_exponents(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    exponents = rng.integers(-3, 4, p.a_scales.shape), rng.integers(-3, 4, p.b_scales.shape)
    p = dataclasses.replace(
        p, a_scales=np.exp2(exponents[0]).astype(np.float32), b_scales=np.exp2(exponents[1]).astype(np.float32)
    )
    assert_close(run(p, "sm_100a", scale_values="pow2"), p)
    e8m0 = ml_dtypes.float8_e8m0fnu
    scaled = dataclasses.replace(p, a_scales=p.a_scales.astype(e8m0), b_scales=p.b_scales.astype(e8m0))
    assert_close(run(scaled, "sm_100a"), p)
    as_bytes = dataclasses.replace(
        scaled, a_scales=scaled.a_scales.view(np.uint8), b_scales=scaled.b_scales.view(np.uint8)
    )
    assert_close(run(as_bytes, "sm_100a"), p)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_an_a_that_is_not_fp8_is_quantised_first(rng: np.random.Generator, arch: str, dtype: Any) -> None:
    p = draw(rng, 5, 136, 272)
    p.a = rng.standard_normal(p.a.shape).astype(dtype)
    codes, scales = jitgemm.per_token_cast_to_fp8(p.a)
    quantised = dataclasses.replace(p, a=codes, a_scales=scales)
    p.a_scales = None  # type: ignore[assignment]
    out = run(p, arch, out_dtype="float32")
    assert (out == run(quantised, arch, out_dtype="float32")).all()
    assert_close(out, quantised)
    for policy in ("class", "any"):
        assert_close(run(p, arch, m_policy=policy), quantised)


def test_no_rows_give_an_empty_array_without_a_kernel(rng: np.random.Generator) -> None:
    assert run(draw(rng, 0, 136, 272), "sm_90a").shape == (0, 136)


def changed(**changes: Any) -> Any:
    return lambda p: dataclasses.replace(p, **{name: change(getattr(p, name)) for name, change in changes.items()})


@pytest.mark.parametrize(
    ("change", "options", "kind", "words"),
    [
        (changed(b=lambda b: b[:, :256]), {}, ValueError, r"b: expected shape \[n, k\] = \[136, 272\]"),
        (changed(a=lambda a: a[0]), {}, ValueError, r"a: expected shape \[m, k\], found \[272\]"),
        (changed(a=lambda a: a.astype(np.float32)), {}, ValueError, "a: expected dtype float8_e4m3fn or float8_e5m2"),
        (changed(a_scales=lambda s: None), {}, ValueError, "a: expected dtype bfloat16 or float16 or float32"),
        (changed(a_scales=lambda s: s[:, :2]), {}, ValueError, r"a_scales: expected shape .* = \[5, 3\]"),
        (changed(b_scales=lambda s: s[:1]), {}, ValueError, r"b_scales: expected shape .* = \[2, 3\]"),
        (changed(a_scales=lambda s: s.astype(np.float16)), {}, ValueError, "a_scales: expected dtype float32"),
        (
            changed(a_scales=lambda s: s.astype(ml_dtypes.float8_e8m0fnu)),
            {},
            ValueError,
            "b_scales: expected dtype float8_e8m0fnu like a_scales",
        ),
        (changed(b=np.asfortranarray), {}, NotImplementedError, "b: expected contiguous rows"),
        (
            changed(a=lambda a: np.broadcast_to(a[:1], a.shape)),
            {},
            ValueError,
            "a: expected rows that do not overlap",
        ),
        (
            changed(a_scales=lambda s: np.broadcast_to(s[:1, :1], s.shape)),
            {},
            NotImplementedError,
            "a_scales: expected scales that are contiguous",
        ),
        (changed(), {"out_dtype": "float64"}, NotImplementedError, "out_dtype: expected one of"),
        (changed(), {"out_dtype": "int32"}, NotImplementedError, "out_dtype: expected bfloat16"),
        (changed(b_scales=lambda s: None), {}, ValueError, "b_scales: expected an array, found None"),
        (changed(), {"batch_invariant": "yes"}, ValueError, "batch_invariant: expected True or False, found 'yes'"),
        (changed(), {"batch_invariant": None}, ValueError, "batch_invariant: expected True or False, found None"),
        (changed(), {"stream": "x"}, ValueError, "stream: expected an address"),
        (changed(), {"stream": -1}, ValueError, "stream: expected an address"),
        (changed(), {"m_policy": "some"}, ValueError, "m_policy: expected one of exact, class, any"),
        (changed(), {"scale_values": "p2"}, ValueError, "scale_values: expected one of any, pow2"),
        (changed(), {"out": np.empty((5, 135), np.float32)}, ValueError, r"out: expected shape \[m, n\] = \[5, 136\]"),
        (
            changed(),
            {"out": np.empty((5, 136), np.float32), "out_dtype": "float16"},
            ValueError,
            "out_dtype: expected float32, the dtype of out",
        ),
        (
            changed(),
            {"out": np.broadcast_to(np.float32(0), (5, 136))},
            ValueError,
            "out: expected an array that may be written",
        ),
        (changed(b=lambda b: b.tolist()), {}, NotImplementedError, "b: expected a torch tensor, a numpy array"),
    ],
)
def test_a_wrong_call_says_which_argument_and_what_was_expected(
    rng: np.random.Generator, change: Any, options: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        run(change(draw(rng, 5, 136, 272)), "sm_90a", **options)
    assert isinstance(caught.value, jitgemm.Error)


def test_what_has_no_kernel_is_unsupported_with_the_reason_of_the_library(rng: np.random.Generator) -> None:
    with pytest.raises(jitgemm.Unsupported, match="group_k: supported are the multiples of 32") as caught:
        run(draw(rng, 5, 64, 120, group_k=40), "sm_90a")
    assert caught.value.status == 2
    assert caught.value.status_name == "UNSUPPORTED"
    with pytest.raises(ValueError, match="arch: expected one of"):
        run(draw(rng, 5, 64, 128), "sm_80")


def test_seeds_change_the_schedule_and_not_the_bits(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    results = []
    for seed in (0, 1, 2):
        with jitgemm.simulator("sm_90a", seed=seed):
            results.append(jitgemm.block_scaled_mm(p.a, p.b, p.a_scales, p.b_scales, out_dtype="float32"))
    assert all((result == results[0]).all() for result in results)
