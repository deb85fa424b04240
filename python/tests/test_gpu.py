# SPDX-License-Identifier: Apache-2.0
"""torch tensors on a GPU: the grids and tolerances of other projects through the drop-ins, without
their limits on shapes; streams, graphs, threads, torch.compile."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from typing import Any

import gpu_problems
import pytest

import jitgemm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

if torch.cuda.is_available():
    import gpu_products
    from gpu_products import CloseLikePeer, Guarded, assert_bound, dequantised, draw

    from jitgemm.compat import deep_gemm, flashinfer, vllm


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def pick(array: Any, rows: Any) -> Any:
    """Some rows of FP8 codes; as bytes, since indexing by a mask may not know FP8."""
    return array.view(torch.uint8)[rows].view(array.dtype)


@pytest.fixture(scope="module", autouse=True)
def kernels(request: pytest.FixtureRequest) -> None:
    """Compiles side by side what the chosen grids need, rather than one after the other in them."""
    chosen = {item.function.__name__ for item in request.session.items if isinstance(item, pytest.Function)}
    problems = gpu_problems.problems_of(chosen)
    report = jitgemm.prewarm(problems, device=torch.device("cuda"), progress=False, workers=os.cpu_count())
    assert not report.failures
    print(f"{report.problems} problems prepared in {report.seconds:.1f} s")


# --- The example of the documentation, with one import changed ----------------------------------------


def test_the_example_runs_with_only_the_import_changed() -> None:
    from jitgemm.gemm import group_deepgemm_fp8_nt_groupwise
    from jitgemm.utils import per_block_cast_to_fp8, per_token_cast_to_fp8

    m_per_group, n, k = 128, 2048, 4096
    group_size = 2
    m = m_per_group * group_size
    a_f32 = torch.randn(m, k, device="cuda", dtype=torch.float32)
    b_f32 = torch.randn(group_size, n, k, device="cuda", dtype=torch.float32)
    a_fp8, a_scale = per_token_cast_to_fp8(a_f32)
    b_fp8 = torch.empty_like(b_f32, dtype=torch.float8_e4m3fn)
    b_scale = torch.empty((group_size, n // 128, k // 128), device="cuda", dtype=torch.float32)
    for i in range(group_size):
        b_fp8[i], b_scale[i] = per_block_cast_to_fp8(b_f32[i])
    m_indices = torch.empty(m, device="cuda", dtype=torch.int32)
    for i in range(group_size):
        row_slice = slice(i * m_per_group, (i + 1) * m_per_group)
        m_indices[row_slice] = i
    result = group_deepgemm_fp8_nt_groupwise(a_fp8, b_fp8, a_scale, b_scale, m_indices, out_dtype=torch.bfloat16)
    assert result.shape == torch.Size([256, 2048])
    for i in range(group_size):
        rows = slice(i * m_per_group, (i + 1) * m_per_group)
        assert_bound(result[rows], a_fp8[rows], b_fp8[i], a_scale[rows], b_scale[i])
        assert deep_gemm.calc_diff(result[rows], a_f32[rows] @ b_f32[i].T) < 2e-3


# --- Dense: vLLM's grid ---------------------------------------------------------------------------------


def test_vllm_block_matmul_grid() -> None:
    for n, k in itertools.product(gpu_problems.VLLM_N, gpu_problems.VLLM_K):
        b = gpu_products.cast((torch.rand(n, k, device="cuda") - 0.5) * 896)
        b_scales = torch.rand(-(-n // 128), -(-k // 128), device="cuda") * 1e-2
        weights = gpu_products.dequantised_weights(b, b_scales)
        for m in gpu_problems.VLLM_M:
            a = gpu_products.cast((torch.rand(m, k, device="cuda") - 0.5) * 896)
            a_scales = torch.rand(m, -(-k // 128), device="cuda") * 1e-2
            out = vllm.w8a8_block_fp8_matmul(a, b, a_scales, b_scales, [128, 128], torch.bfloat16)
            expected = gpu_products.dequantised_rows(a, a_scales) @ weights.T
            error = (out.float() - expected.bfloat16().float()).abs().mean() / expected.abs().mean()
            assert error < 1e-3, (m, n, k)


def test_vllm_scales_with_rows_contiguous() -> None:
    given = draw((32,), (), 576, 7168)
    columns = deep_gemm.get_mn_major_tma_aligned_tensor(given.a_scales)
    out = vllm.cutlass_scaled_mm(given.a, given.b, columns, given.b_scales, [128, 128], torch.float16)
    assert_bound(out, given.a, given.b, given.a_scales, given.b_scales)


def test_flashinfer_dense_grid() -> None:
    sizes = gpu_problems.SIZES
    for n, k in itertools.product(sizes, sizes):
        b, b_scales = flashinfer.per_block_cast_to_fp8(torch.randn(n, k, device="cuda") / k**0.5, scale_rule="pow2")
        weights = gpu_products.dequantised_weights(b, b_scales)
        for m in gpu_problems.DENSE_M:
            a, a_scales = flashinfer.per_token_cast_to_fp8(torch.randn(m, k, device="cuda"), scale_rule="pow2")
            expected = gpu_products.dequantised_rows(a, a_scales) @ weights.T
            for mode in ("MN", "K"):
                scales = (a_scales, b_scales) if mode == "K" else (a_scales.T.contiguous(), b_scales.T.contiguous())
                out = flashinfer.gemm_fp8_nt_groupwise(a, b, *scales, scale_major_mode=mode)
                torch.testing.assert_close(out.float(), expected, atol=1e-2, rtol=1e-2)


# --- Grouped: DeepGEMM's and FlashInfer's grids ------------------------------------------------------


@pytest.mark.parametrize(("groups", "mean"), gpu_problems.DEEP_GEMM_CONTIGUOUS)
@pytest.mark.parametrize(("n", "k"), gpu_problems.DEEP_GEMM_SHAPES)
def test_deep_gemm_contiguous_grid(groups: int, mean: int, n: int, k: int) -> None:
    alignment = deep_gemm.get_mk_alignment_for_contiguous_layout()
    counts = gpu_problems.counts_around(groups, mean)
    indices = torch.tensor(gpu_problems.padded(counts, alignment), dtype=torch.int32, device="cuda")
    given = draw((len(indices),), (groups,), n, k)
    given.a.view(torch.uint8)[indices < 0] = 0
    d = torch.full((len(indices), n), 7, dtype=torch.bfloat16, device="cuda")
    scales = deep_gemm.get_mn_major_tma_aligned_tensor(given.a_scales)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous((given.a, scales), (given.b, given.b_scales), d, indices)
    first = 0
    for group, count in enumerate(counts):
        rows = slice(first, first + count)
        expected = dequantised(given.a[rows], given.b[group], given.a_scales[rows], given.b_scales[group])
        assert deep_gemm.calc_diff(d[rows], expected) < 1e-3
        first += -(-count // alignment) * alignment
    assert bool((d[indices < 0] == 7).all())


def test_deep_gemm_contiguous_with_end_offsets() -> None:
    counts = [100, 0, 260, 1]
    ends, first = [], 0
    for count in counts:
        first = -(-first // 128) * 128 + count
        ends.append(first)
    m = -(-first // 128) * 128
    given = draw((m,), (4,), 576, 512)
    d = torch.full((m, 576), 7, dtype=torch.bfloat16, device="cuda")
    offsets = torch.tensor(ends, dtype=torch.int32, device="cuda")
    operands = (given.a, given.a_scales), (given.b, given.b_scales)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(*operands, d, offsets, use_psum_layout=True)
    padding = torch.ones(m, dtype=torch.bool, device="cuda")
    for group, (count, end) in enumerate(zip(counts, ends, strict=True)):
        rows = slice(end - count, end)
        padding[rows] = False
        if count:
            assert_bound(d[rows], given.a[rows], given.b[group], given.a_scales[rows], given.b_scales[group])
    assert bool((d[padding] == 0).all())


@pytest.mark.parametrize(("groups", "mean"), gpu_problems.DEEP_GEMM_MASKED)
@pytest.mark.parametrize(("n", "k"), gpu_problems.DEEP_GEMM_SHAPES)
def test_deep_gemm_masked_grid(groups: int, mean: int, n: int, k: int) -> None:
    most = gpu_problems.DEEP_GEMM_MOST
    given = draw((groups, most), (groups,), n, k)
    masked = (mean * (0.7 + 0.6 * torch.rand(groups, device="cuda"))).int()
    d = torch.full((groups, most, n), 7, dtype=torch.bfloat16, device="cuda")
    operands = (given.a, given.a_scales), (given.b, given.b_scales)
    deep_gemm.m_grouped_fp8_gemm_nt_masked(*operands, d, masked, mean)
    for group, count in enumerate(masked.tolist()):
        rows = group, slice(0, count)
        expected = dequantised(given.a[rows], given.b[group], given.a_scales[rows], given.b_scales[group])
        assert deep_gemm.calc_diff(d[rows], expected) < 1e-3
        assert bool((d[group, count:] == 7).all())


def test_deep_gemm_packed_exponents() -> None:
    given = draw((300,), (3,), 576, 1024)
    for name in ("a_scales", "b_scales"):
        setattr(given, name, torch.randint_like(getattr(given, name), -3, 4).exp2())
    rows = given.b_scales.repeat_interleave(128, 1)[:, :576]
    pack = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor
    a_scales, b_scales = pack(given.a_scales), pack(rows)
    d = torch.zeros(300, 576, dtype=torch.bfloat16, device="cuda")
    indices = torch.arange(300, device="cuda", dtype=torch.int32) // 100
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous((given.a, a_scales), (given.b, b_scales), d, indices)
    for group in range(3):
        part = slice(100 * group, 100 * group + 100)
        assert_bound(d[part], given.a[part], given.b[group], given.a_scales[part], given.b_scales[group])
    deep_gemm.fp8_gemm_nt((given.a, a_scales), (given.b[0], pack(rows[0])), d)
    assert_bound(d, given.a, given.b[0], given.a_scales, given.b_scales[0])


@pytest.mark.parametrize(("n", "k"), gpu_problems.GROUP_SHAPES)
@pytest.mark.parametrize("groups", gpu_problems.GROUPS)
def test_flashinfer_group_and_batch_grid(n: int, k: int, groups: int) -> None:
    b = torch.empty(groups, n, k, device="cuda", dtype=torch.float8_e4m3fn)
    b_scales = torch.empty(groups, n // 128, k // 128, device="cuda")
    for group in range(groups):
        b_f32 = torch.randn(n, k, device="cuda")
        b[group], b_scales[group] = flashinfer.per_block_cast_to_fp8(b_f32, scale_rule="pow2")
    for m in gpu_problems.group_rows_of(groups):
        a, a_scales = flashinfer.per_token_cast_to_fp8(torch.randn(m, k, device="cuda"), scale_rule="pow2")
        named = [row * groups // m for row in range(m)]
        indices = torch.tensor(named, dtype=torch.int32, device="cuda")
        out = flashinfer.group_deepgemm_fp8_nt_groupwise(a, b, a_scales, b_scales, indices)
        comparison = CloseLikePeer(3e-2)
        for group in sorted(set(named)):
            rows = slice(named.index(group), m - named[::-1].index(group))
            comparison.add(out[rows], a[rows], b[group], a_scales[rows], b_scales[group])
        comparison.finish()
    for m in gpu_problems.BATCH_M:
        a, a_scales = flashinfer.per_token_cast_to_fp8(torch.randn(m, k, device="cuda"), scale_rule="pow2")
        stack, stack_scales = a.expand(groups, m, k).contiguous(), a_scales.expand(groups, m, -1).contiguous()
        counts, hint = gpu_problems.masked_rows(groups, m)
        masked = torch.tensor(counts, dtype=torch.int32, device="cuda")
        out = flashinfer.batch_deepgemm_fp8_nt_groupwise(stack, b, stack_scales, b_scales, masked, hint)
        comparison = CloseLikePeer(3e-2)
        for group, count in enumerate(counts):
            if count:
                comparison.add(out[group, :count], a[:count], b[group], a_scales[:count], b_scales[group])
        comparison.finish()


@pytest.mark.parametrize("groups", gpu_problems.SEGMENT_GROUPS)
def test_flashinfer_segment_grid(groups: int) -> None:
    for n, k in itertools.product(gpu_problems.SIZES, gpu_problems.SIZES):
        most = max(gpu_problems.SEGMENT_M)
        given = draw((most,), (groups,), n, k)
        given.b_scales /= k**0.5
        weights = [gpu_products.dequantised_weights(given.b[g], given.b_scales[g]) for g in range(groups)]
        rows_of = gpu_products.dequantised_rows(given.a, given.a_scales)
        for m in gpu_problems.SEGMENT_M:
            bounds = [m * group // groups for group in range(groups + 1)]
            pointers = torch.tensor(bounds, dtype=torch.int32, device="cuda")
            expected = torch.cat([rows_of[bounds[g] : bounds[g + 1]] @ weights[g].T for g in range(groups)])
            a, a_scales = given.a[:m], given.a_scales[:m]
            for mode in ("MN", "K"):
                scales = a_scales, given.b_scales
                if mode == "MN":
                    scales = scales[0].T.contiguous(), scales[1].mT.contiguous()
                out = flashinfer.group_gemm_fp8_nt_groupwise(
                    a, given.b, *scales, pointers, scale_major_mode=mode, out_dtype=torch.bfloat16
                )
                torch.testing.assert_close(out.float(), expected, atol=1e-2, rtol=1e-2)


# --- Ours: skewed routing, every alignment, guard bytes ------------------------------------------------


@pytest.mark.parametrize("groups", gpu_problems.ROUTED_GROUPS)
def test_grouped_products_of_skewed_routing_leave_everything_else_alone(groups: int) -> None:
    for named, alignment, n, k in gpu_problems.routed_cases(groups):
        indices = torch.tensor(named, dtype=torch.int32, device="cuda")
        m = len(named)
        given = draw((m,), (groups,), n, k)
        arrays = {name: Guarded(getattr(given, name)) for name in ("a", "b", "a_scales", "b_scales")}
        rows_of = Guarded(indices)
        out = Guarded(torch.full((m, n), 7, dtype=torch.bfloat16, device="cuda"))
        jitgemm.grouped_block_scaled_mm(
            *(guard.tensor for guard in arrays.values()),
            rows_of.tensor,
            out.tensor,
            row_alignment=alignment,
            m_policy="class",
        )
        assert all(guard.intact() for guard in (*arrays.values(), rows_of, out))
        assert bool((out.tensor[indices < 0] == 7).all())
        for group in sorted(set(named) - {-1})[:6]:
            rows = indices == group
            assert_bound(
                out.tensor[rows], pick(given.a, rows), given.b[group], given.a_scales[rows], given.b_scales[group]
            )


def test_any_integers_are_safe() -> None:
    given = draw((333,), (7,), 136, 272)
    indices = torch.randint(-(2**31), 2**31 - 1, (333,), device="cuda", dtype=torch.int32)
    indices[::3] = torch.randint(-2, 9, (111,), device="cuda", dtype=torch.int32)
    out = Guarded(torch.full((333, 136), 7, dtype=torch.float32, device="cuda"))
    operands = given.a, given.b, given.a_scales, given.b_scales
    jitgemm.grouped_block_scaled_mm(*operands, indices, out.tensor)
    assert out.intact()
    outside = (indices < 0) | (indices > 6)
    assert bool((out.tensor[outside] == 7).all())
    for group in range(7):
        rows = indices == group
        assert_bound(out.tensor[rows], pick(given.a, rows), given.b[group], given.a_scales[rows], given.b_scales[group])


# --- Streams, graphs, threads, torch.compile -----------------------------------------------------------


def test_the_current_stream_is_used() -> None:
    given = draw((512,), (), 1024, 1024)
    operands = given.a, given.b, given.a_scales, given.b_scales
    expected = jitgemm.block_scaled_mm(*operands)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    late = torch.zeros_like(given.a.view(torch.uint8)).view(torch.float8_e4m3fn)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        late.copy_(given.a)  # only what is ordered after this on the stream sees it
        out = jitgemm.block_scaled_mm(late, *operands[1:])
    other = jitgemm.block_scaled_mm(late, *operands[1:], stream=stream.cuda_stream)
    stream.synchronize()
    assert torch.equal(out, expected)
    assert torch.equal(other, expected)


def test_a_graph_replays_with_other_contents() -> None:
    given = draw((256,), (4,), 576, 1024)
    operands = given.a, given.b, given.a_scales, given.b_scales
    indices = torch.zeros(256, dtype=torch.int32, device="cuda")
    product, dense = (torch.zeros(256, 576, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    masked_rows = torch.zeros(4, dtype=torch.int32, device="cuda")
    masked = torch.zeros(4, 64, 576, dtype=torch.bfloat16, device="cuda")
    stacked = given.a.view(4, 64, 1024), given.b, given.a_scales.view(4, 64, 8), given.b_scales

    def work() -> None:
        jitgemm.group_deepgemm_fp8_nt_groupwise(*operands, indices, out=product)
        jitgemm.block_scaled_mm(given.a, given.b[0], given.a_scales, given.b_scales[0], dense)
        jitgemm.batch_deepgemm_fp8_nt_groupwise(*stacked, masked_rows, 16, out=masked)

    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    for step in range(3):
        fresh = draw((256,), (4,), 576, 1024)
        for old, new in zip(operands, (fresh.a, fresh.b, fresh.a_scales, fresh.b_scales), strict=True):
            old.copy_(new)
        indices.copy_(torch.arange(256, device="cuda") * (step + 1) % 4)
        masked_rows.copy_(torch.tensor([step, 64, 0, 17 * step], dtype=torch.int32))
        masked.fill_(7)
        graph.replay()
        for group in range(4):
            rows = indices == group
            if bool(rows.any()):
                scales = given.a_scales[rows], given.b_scales[group]
                assert_bound(product[rows], pick(given.a, rows), given.b[group], *scales)
            count = int(masked_rows[group])
            part = tuple(array[group] for array in stacked)
            assert_bound(masked[group, :count], part[0][:count], part[1], part[2][:count], part[3])
            assert bool((masked[group, count:] == 7).all())
        assert_bound(dense, given.a, given.b[0], given.a_scales, given.b_scales[0])


def test_a_capture_of_something_not_prepared_says_so_and_goes_on() -> None:
    ready, other = draw((64,), (), 256, 256), draw((67,), (), 264, 256)
    out = jitgemm.block_scaled_mm(ready.a, ready.b, ready.a_scales, ready.b_scales)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(jitgemm.CaptureNotReady, match="prepared"):
            jitgemm.block_scaled_mm(other.a, other.b, other.a_scales, other.b_scales)
        captured = jitgemm.block_scaled_mm(ready.a, ready.b, ready.a_scales, ready.b_scales)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(captured, out)


def test_prepare_makes_a_capture_possible() -> None:
    jitgemm.prepare(jitgemm.GemmProblem(m=71, n=264, k=256), torch.device("cuda"))
    given = draw((71,), (), 264, 256)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = jitgemm.block_scaled_mm(given.a, given.b, given.a_scales, given.b_scales)
    graph.replay()
    assert_bound(out, given.a, given.b, given.a_scales, given.b_scales)


def test_threads_on_streams_of_their_own() -> None:
    failures: list[BaseException] = []

    def work(m: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                given = draw((m,), (), 520, 640)
                for _ in range(5):
                    out = jitgemm.block_scaled_mm(given.a, given.b, given.a_scales, given.b_scales)
                    assert_bound(out, given.a, given.b, given.a_scales, given.b_scales)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(m,)) for m in (3, 3, 65, 200, 200, 777)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_every_gpu_runs_its_own_tensors_whichever_is_current() -> None:
    given = draw((65,), (2,), 136, 272)
    indices = torch.arange(65, device="cuda", dtype=torch.int32) % 2
    current = torch.cuda.current_device()
    for device in range(torch.cuda.device_count()):
        part = gpu_products.Grouped(*(getattr(given, name).to(device) for name in ("a", "b", "a_scales", "b_scales")))
        for _ in range(2):
            out = jitgemm.block_scaled_mm(part.a, part.b[0], part.a_scales, part.b_scales[0])
            assert out.get_device() == device
            assert_bound(out, part.a, part.b[0], part.a_scales, part.b_scales[0])
            out = jitgemm.group_deepgemm_fp8_nt_groupwise(
                part.a, part.b, part.a_scales, part.b_scales, indices.to(device)
            )
            assert_bound(out[1::2], part.a[1::2], part.b[1], part.a_scales[1::2], part.b_scales[1])
        assert torch.cuda.current_device() == current
    if torch.cuda.device_count() > 1:
        with pytest.raises(ValueError, match="b: expected memory of cuda:0 like a, found cuda:1"):
            jitgemm.block_scaled_mm(given.a, given.b[0].to(1), given.a_scales, given.b_scales[0])


def test_torch_compile_of_a_layer() -> None:
    torch._dynamo.reset()
    given = draw((96,), (2,), 512, 512)
    indices = torch.arange(96, device="cuda", dtype=torch.int32) // 48

    def layer(a: Any, b: Any, a_scales: Any, b_scales: Any) -> Any:
        first = jitgemm.block_scaled_mm(a, b[0], a_scales, b_scales[0])
        codes, scales = jitgemm.per_token_cast_to_fp8(torch.nn.functional.silu(first))
        return jitgemm.group_deepgemm_fp8_nt_groupwise(codes, b, scales, b_scales, indices)

    operands = given.a, given.b, given.a_scales, given.b_scales
    # Inductor's kernels need a host compiler, which a machine that only runs things may lack.
    inductor = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    expected = layer(*operands)
    for backend in (["inductor"] if inductor else []) + ["aot_eager", "cudagraphs"]:
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, backend=backend)
        for _ in range(3):
            result = compiled(*operands).clone()
        assert deep_gemm.calc_diff(result, expected) < 1e-4, backend


def test_dlpack_and_reinterpreted_bytes_on_the_gpu() -> None:
    given = draw((33,), (), 136, 272)

    class Exporter:
        def __init__(self, tensor: Any) -> None:
            self.__dlpack__ = tensor.__dlpack__
            self.__dlpack_device__ = tensor.__dlpack_device__

    class Interface:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    out = torch.zeros(33, 136, device="cuda")
    torch.cuda.synchronize()
    jitgemm.block_scaled_mm(
        jitgemm.view(Exporter(given.a.view(torch.uint8)), "float8_e4m3fn"),
        jitgemm.view(Interface(given.b.view(torch.uint8)), "float8_e4m3fn"),
        Exporter(given.a_scales),
        Interface(given.b_scales),
        Interface(out),
    )
    torch.cuda.synchronize()
    assert_bound(out, given.a, given.b, given.a_scales, given.b_scales)
