# SPDX-License-Identifier: Apache-2.0
"""torch tensors without a GPU: the custom ops, their fake functions, torch.compile. CPU tensors run
on the simulator."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from products import Product, assert_close, draw

import jitgemm
from jitgemm.compat import deep_gemm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture
def p(rng: np.random.Generator) -> Product:
    return draw(rng, 5, 136, 272)


def fp8(array: np.ndarray) -> Any:
    return torch.from_numpy(array.view(np.uint8)).view(torch.float8_e4m3fn)


def tensors(p: Product) -> list[Any]:
    return [fp8(p.a), fp8(p.b), torch.from_numpy(p.a_scales), torch.from_numpy(p.b_scales)]


def check(out: Any, p: Product) -> None:
    assert_close(out.float().numpy(), p)


def test_a_call_returns_a_tensor_or_the_out_that_was_given(p: Product) -> None:
    out = jitgemm.block_scaled_mm(*tensors(p), out_dtype=torch.float32)
    check(out, p)
    given = torch.zeros(5, 136)
    assert jitgemm.block_scaled_mm(*tensors(p), given) is given
    assert torch.equal(given, out)
    assert jitgemm.block_scaled_mm(*tensors(p)).dtype == torch.bfloat16
    assert jitgemm.block_scaled_mm(*tensors(p), out_dtype="float16").dtype == torch.float16


def test_what_a_call_remembers_depends_on_shapes_strides_and_alignment(p: Product) -> None:
    a, b, a_scales, b_scales = tensors(p)
    for _ in range(2):
        check(jitgemm.block_scaled_mm(a, b, a_scales, b_scales, out_dtype=torch.float32), p)
        columns = a_scales.t().contiguous().t()
        check(jitgemm.block_scaled_mm(a, b, columns, b_scales, out_dtype=torch.float32), p)
        memory = torch.zeros(5 * 272 + 3, dtype=torch.uint8)[3:].view(torch.float8_e4m3fn).view(5, 272)
        memory.copy_(a)
        check(jitgemm.block_scaled_mm(memory, b, a_scales, b_scales, out_dtype=torch.float32), p)
        part = Product(p.a[:3], p.b, p.a_scales[:3], p.b_scales)
        check(jitgemm.block_scaled_mm(a[:3], b, a_scales[:3], b_scales, out_dtype=torch.float32), part)
    with jitgemm.simulator("sm_100a"):
        check(jitgemm.block_scaled_mm(a, b, a_scales, b_scales, out_dtype=torch.float32), p)


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile_keeps_one_graph(p: Product, dynamic: bool) -> None:
    torch._dynamo.reset()

    def layer(a: Any, b: Any, a_scales: Any, b_scales: Any) -> Any:
        return jitgemm.block_scaled_mm(a, b, a_scales, b_scales, out_dtype=torch.float32) * 2

    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    a, b, a_scales, b_scales = tensors(p)
    for rows in (5, 3):
        part = Product(p.a[:rows], p.b, p.a_scales[:rows], p.b_scales)
        check(compiled(a[:rows], b, a_scales[:rows], b_scales) / 2, part)


FIRST_CALL = """
import jitgemm
import torch

def layer(a, b, a_scales, b_scales):
    return jitgemm.block_scaled_mm(a, b, a_scales, b_scales, out_dtype=torch.float32)

a, b = (torch.ones(rows, 128).to(torch.float8_e4m3fn) for rows in (2, 8))
out = torch.compile(layer, fullgraph=True, backend="aot_eager")(a, b, torch.ones(2, 1), torch.ones(1, 1))
assert bool((out == 128).all())
"""


def test_torch_compile_may_trace_the_first_call_of_a_torch_that_came_later() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_torch_compile_sees_that_out_is_written(p: Product) -> None:
    torch._dynamo.reset()

    def layer(out: Any, *arrays: Any) -> Any:
        deep_gemm.fp8_gemm_nt((arrays[0], arrays[2]), (arrays[1], arrays[3]), out)
        return out + 1

    out = torch.zeros(5, 136)
    result = torch.compile(layer, fullgraph=True, backend="aot_eager")(out, *tensors(p))
    check(out, p)
    assert torch.equal(result, out + 1)


def test_an_a_that_is_not_fp8_is_quantised_first(p: Product) -> None:
    torch._dynamo.reset()
    _, b, _, b_scales = tensors(p)
    a = torch.randn(5, 272, generator=torch.Generator().manual_seed(1))
    codes, scales = jitgemm.per_token_cast_to_fp8(a)
    expected = jitgemm.block_scaled_mm(codes, b, scales, b_scales)

    def layer(x: Any) -> Any:
        return jitgemm.block_scaled_mm(x, b, None, b_scales)

    assert torch.equal(layer(a), expected)
    assert torch.equal(torch.compile(layer, fullgraph=True, backend="aot_eager")(a), expected)


def test_grouped_products_eager_compiled_and_counting(rng: np.random.Generator) -> None:
    torch._dynamo.reset()
    parts = [draw(rng, 6, 72, 272) for _ in range(2)]
    a, _, a_scales, _ = tensors(parts[0])
    b = torch.stack([fp8(part.b).view(torch.uint8) for part in parts]).view(torch.float8_e4m3fn)
    b_scales = torch.stack([torch.from_numpy(part.b_scales) for part in parts])
    indices = torch.tensor([1, 1, -1, 0, 9, 0], dtype=torch.int32)

    def product(*arrays: Any) -> Any:
        return jitgemm.group_deepgemm_fp8_nt_groupwise(*arrays, out_dtype=torch.float32)

    def counted(count: Any, *arrays: Any) -> Any:
        return jitgemm.grouped_block_scaled_mm(
            *arrays, out_dtype=torch.float32, zero_ungrouped=True, invalid_count=count
        )

    compile_options: dict[str, Any] = {"fullgraph": True, "backend": "aot_eager"}
    for function in (product, torch.compile(product, **compile_options)):
        out = function(a, b, a_scales, b_scales, indices)
        for group, rows in ((0, [3, 5]), (1, [0, 1])):
            part = Product(parts[0].a[rows], parts[group].b, parts[0].a_scales[rows], parts[group].b_scales)
            check(out[rows], part)
    for function in (counted, torch.compile(counted, **compile_options)):
        count = torch.zeros(1, dtype=torch.int32)
        out = function(count, a, b, a_scales, b_scales, indices)
        assert count.item() == 1
        assert bool((out[[2, 4]] == 0).all())


def test_fake_functions_give_shapes_without_running(p: Product) -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(tensor) for tensor in tensors(p)]
        out = jitgemm.block_scaled_mm(*fakes, out_dtype=torch.float16)
        assert (tuple(out.shape), out.dtype) == ((5, 136), torch.float16)
        groups = torch.ops.jitgemm.grouped_block_scaled_mm(
            fakes[0],
            fakes[1][None],
            fakes[2],
            fakes[3][None],
            mode.from_tensor(torch.zeros(5, dtype=torch.int32)),
            torch.float32,
            128,
            128,
            "row_indices",
            0,
            0,
            False,
            "any",
            "exact",
            False,
        )
        assert tuple(groups.shape) == (5, 136)
        with pytest.raises(RuntimeError, match="expected k = 272, found 271"):
            jitgemm.block_scaled_mm(fakes[0], fakes[1][:, :271], *fakes[2:])


def test_the_ops_agree_with_their_declarations(p: Product) -> None:
    options = (128, 128, "any", "exact", False)
    checks = ("test_faketensor", "test_aot_dispatch_dynamic", "test_autograd_registration")
    torch.library.opcheck(torch.ops.jitgemm.block_scaled_mm, (*tensors(p), torch.float32, *options), test_utils=checks)
    torch.library.opcheck(
        torch.ops.jitgemm.block_scaled_mm_out, (*tensors(p), torch.zeros(5, 136), *options), test_utils=checks
    )


def test_a_gradient_is_refused_when_it_is_asked_for(p: Product) -> None:
    arrays = tensors(p)
    arrays[2].requires_grad_()
    out = jitgemm.block_scaled_mm(*arrays, out_dtype=torch.float32)
    with pytest.raises(NotImplementedError, match="there is no gradient"):
        out.sum().backward()
    with pytest.raises(NotImplementedError, match="out: there is no gradient"):
        jitgemm.block_scaled_mm(*arrays, torch.zeros(5, 136))
    with torch.no_grad():
        check(jitgemm.block_scaled_mm(*arrays, out_dtype=torch.float32), p)


def test_subclasses_go_through_the_dispatcher(p: Product) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    with Record():
        check(jitgemm.block_scaled_mm(*tensors(p), out_dtype=torch.float32), p)
        given = torch.zeros(5, 136)
        assert jitgemm.block_scaled_mm(*tensors(p), given, "float32") is given
        with pytest.raises(ValueError, match="out_dtype"):
            jitgemm.block_scaled_mm(*tensors(p), given, "float16")
    check(given, p)
    assert "jitgemm.block_scaled_mm.default" in seen
    assert "jitgemm.block_scaled_mm_out.default" in seen


def test_wrong_tensors_are_named(p: Product) -> None:
    a, b, a_scales, b_scales = tensors(p)
    with pytest.raises(ValueError, match="b: expected shape"):
        jitgemm.block_scaled_mm(a, b[:, :100], a_scales, b_scales)
    with pytest.raises(ValueError, match="b: expected a torch tensor like a, found ndarray"):
        jitgemm.block_scaled_mm(a, p.b, a_scales, b_scales)
    with pytest.raises(ValueError, match="out_dtype"):
        jitgemm.block_scaled_mm(a, b, a_scales, b_scales, torch.zeros(5, 136), torch.float16)
    with pytest.raises(NotImplementedError, match="out_dtype"):
        jitgemm.block_scaled_mm(a, b, a_scales, b_scales, out_dtype=torch.float64)
    with pytest.raises(NotImplementedError, match="a: expected a CUDA tensor"):
        jitgemm.block_scaled_mm(a.to("meta"), b, a_scales, b_scales)
    with pytest.raises(ValueError, match="stream: expected None"):
        jitgemm.block_scaled_mm(a, b, a_scales, b_scales, stream=0)
    with pytest.raises(ValueError, match="b_scales: expected an array, found None"):
        jitgemm.block_scaled_mm(a, b, a_scales, None)
    with pytest.raises(ValueError, match="group_rows: expected an array, found None"):
        jitgemm.grouped_block_scaled_mm(a, b[None], a_scales, b_scales[None], None)


def test_threads_share_what_is_prepared(p: Product) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                check(jitgemm.block_scaled_mm(*tensors(p), out_dtype=torch.float32), p)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("rule", ["amax", "pow2"])
def test_quantisers_of_torch_and_numpy_agree_to_the_bit(rng: np.random.Generator, rule: str) -> None:
    x = rng.standard_normal((2, 70, 200)).astype(np.float32)
    x[0, 3, 5], x[1, 60, 199], x[1, :32] = np.nan, np.inf, 0
    for function in (jitgemm.per_token_cast_to_fp8, jitgemm.per_block_cast_to_fp8):
        expected = function(x, scale_rule=rule)
        found = function(torch.from_numpy(x), scale_rule=rule)
        assert np.array_equal(found[1].numpy(), expected[1], equal_nan=True)
        codes, wanted = found[0].view(torch.uint8).numpy(), expected[0].view(np.uint8)
        nan = (wanted & 0x7F) == 0x7F
        assert (codes[~nan] == wanted[~nan]).all()
        assert ((codes[nan] & 0x7F) == 0x7F).all()


def test_exponents_of_tensors_are_packed_like_those_of_arrays(rng: np.random.Generator) -> None:
    scales = np.exp2(rng.integers(-126, 128, (2, 5, 6))).astype(np.float32)
    expected = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor(scales)
    found = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.from_numpy(scales))
    assert (found.numpy() == expected).all()
    assert found.stride() == (16, 1, 8)
    aligned = deep_gemm.get_mn_major_tma_aligned_tensor(torch.from_numpy(scales))
    assert torch.equal(aligned, torch.from_numpy(scales))
    assert aligned.stride() == (48, 1, 8)
