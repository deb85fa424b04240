# SPDX-License-Identifier: Apache-2.0
"""Arrays that are neither numpy's nor torch's: DLPack, __cuda_array_interface__, reinterpreted bytes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from products import assert_close, draw

import jitgemm
from jitgemm import _abi, _arrays, _library


class Exporter:
    """An array of some library: shows DLPack and nothing else."""

    def __init__(self, array: np.ndarray, *, versioned: bool) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        if "max_version" in options and not self.versioned:
            raise TypeError("max_version")
        return self.array.__dlpack__(**options)


class OnGpu:
    """A __cuda_array_interface__ that points nowhere."""

    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (4096, False),
            "strides": None,
            "stream": None,
            **changes,
        }


@pytest.mark.parametrize("versioned", [False, True])
def test_host_memory_through_dlpack_runs_on_the_simulator(rng: np.random.Generator, versioned: bool) -> None:
    p = draw(rng, 5, 136, 272)
    out = np.zeros((5, 136), np.float32)
    given = jitgemm.view(Exporter(out, versioned=versioned))
    result = jitgemm.block_scaled_mm(
        jitgemm.view(Exporter(p.a.view(np.uint8), versioned=versioned), "float8_e4m3fn"),
        jitgemm.view(p.b.view(np.uint8), p.b.dtype),
        Exporter(p.a_scales, versioned=versioned),
        p.b_scales,
        given,
    )
    assert result is given
    assert_close(out, p)


def test_strides_and_offsets_come_through_dlpack() -> None:
    array = np.arange(60, dtype=np.float32).reshape(6, 10)[1:5, 2:8:2]
    found = _arrays.as_view("x", Exporter(array, versioned=True))
    assert found.address == array.__array_interface__["data"][0]
    assert (found.shape, found.strides, found.dtype, found.device) == ((4, 3), (10, 2), _abi.F32, "sim")
    assert found.writable


def test_a_read_only_array_is_known_to_be() -> None:
    array = np.zeros((2, 2), np.float32)
    array.flags.writeable = False
    assert not jitgemm.view(array).writable


def test_a_read_only_array_that_its_library_keeps_is_named() -> None:
    array = np.zeros((2, 2), np.float32)
    array.flags.writeable = False
    with pytest.raises(jitgemm.InvalidArgument, match="array: its library does not hand it out"):
        jitgemm.view(Exporter(array, versioned=False))


def test_cuda_array_interface_is_read() -> None:
    found = jitgemm.view(OnGpu())
    assert found.device_assumed
    assert (found.address, found.shape, found.strides, found.device) == (4096, (2, 3), (3, 1), "cuda:0")
    assert jitgemm.view(OnGpu(strides=(4, 8))).strides == (1, 2)
    assert not jitgemm.view(OnGpu(data=(4096, True))).writable
    assert jitgemm.view(OnGpu(typestr="|u1"), "float8_e5m2").dtype == _abi.F8_E5M2


def test_a_view_says_where_an_array_is_that_does_not() -> None:
    for device in (1, np.int64(1), "cuda:1"):
        for array in (OnGpu(), jitgemm.view(OnGpu())):
            found = jitgemm.view(array, device=device)
            assert (found.device, found.device_assumed) == ("cuda:1", False)
    with pytest.raises(ValueError, match="device: expected cuda:1, where the array is, found cuda:2"):
        jitgemm.view(jitgemm.view(OnGpu(), device=1), device=2)
    with pytest.raises(ValueError, match="device: expected sim"):
        jitgemm.view(np.zeros(3, np.float32), device=0)
    for wrong in ({"device": 1.5}, {"stream": "x"}):
        with pytest.raises(jitgemm.InvalidArgument, match=f"{next(iter(wrong))}: expected"):
            jitgemm.view(OnGpu(), **wrong)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: jitgemm.view(OnGpu(typestr="<f8")), "typestr"),
        (lambda: jitgemm.view(OnGpu(mask=object())), "masked"),
        (lambda: jitgemm.view(OnGpu(strides=(6, 2))), "strides of whole elements"),
        (lambda: jitgemm.view(np.zeros((2, 2))), "expected one of .* found float64"),
        (lambda: jitgemm.view(np.zeros((2, 2), ">f4")), "byte order"),
        (lambda: jitgemm.view("text"), "found str"),
    ],
)
def test_what_cannot_be_read_is_unsupported(make: Any, words: str) -> None:
    with pytest.raises(jitgemm.Unsupported, match=words):
        make()


def test_an_interface_without_its_fields_is_refused() -> None:
    array = OnGpu()
    del array.__cuda_array_interface__["typestr"]
    with pytest.raises(jitgemm.InvalidArgument, match="a __cuda_array_interface__ with 'typestr', found none"):
        jitgemm.view(array)


def test_a_view_keeps_the_size_of_elements() -> None:
    with pytest.raises(ValueError, match="expected one of 4 bytes like float32, found uint8"):
        jitgemm.view(np.zeros((2, 2), np.float32), "uint8")


def test_arrays_of_two_devices_are_refused(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    with pytest.raises(ValueError, match="a_scales: expected memory of host memory like a, found cuda:0"):
        jitgemm.block_scaled_mm(p.a, p.b, OnGpu(shape=(5, 3)), p.b_scales)


def test_without_out_the_kind_of_array_must_be_known(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    with pytest.raises(ValueError, match="out: expected an array, since none can be made for View"):
        jitgemm.block_scaled_mm(jitgemm.view(p.a), p.b, p.a_scales, p.b_scales)


def test_a_workspace_of_the_caller_is_used(rng: np.random.Generator) -> None:
    p = draw(rng, 5, 136, 272)
    a = rng.standard_normal(p.a.shape).astype(np.float32)
    call = (a, p.b, None, p.b_scales)
    needed, alignment = jitgemm.prepare(jitgemm.GemmProblem(5, 136, 272, a_dtype="float32")).workspace(5)
    assert needed
    memory = np.zeros(needed + alignment, np.uint8)
    skipped = -memory.ctypes.data % alignment
    workspace = memory[skipped : skipped + needed]
    assert (jitgemm.block_scaled_mm(*call, workspace=workspace) == jitgemm.block_scaled_mm(*call)).all()
    assert workspace.any()
    for wrong, words in (
        (workspace[: needed // 2], "workspace_bytes: expected at least"),
        (workspace[::2], "workspace: expected a contiguous array"),
        (OnGpu(), "workspace: expected memory of sim like a, found cuda:0"),
    ):
        with pytest.raises(jitgemm.InvalidArgument, match=words):
            jitgemm.block_scaled_mm(*call, workspace=wrong)


# A driver of the tests that runs nothing: what is on which GPU, and a stream that is being captured.
FAKE = pathlib.Path(_library.find_library()).parent / "libjitgemm_fake_cuda.so"
ON_FAKE_GPU = """
import ctypes, sys
import jitgemm
from jitgemm import _runtime

class Array:
    pass

def array(typestr, shape, address, dtype=None, device=None):
    made = Array()
    made.__cuda_array_interface__ = dict(version=3, typestr=typestr, shape=shape, data=(address, False))
    return jitgemm.view(made, dtype, device=device)

def call(address, device=None, **options):
    a = array("<f4", (5, 272), address, None, device)
    b = array("|u1", (136, 272), 0x20000000, "float8_e4m3fn", device)
    b_scales = array("<f4", (2, 3), 0x30000000, None, device)
    out = array("<f4", (5, 136), 0x40000000, None, device)
    try:
        jitgemm.block_scaled_mm(a, b, None, b_scales, out, stream=0x7000, **options)
    except jitgemm.Error as error:
        return str(error)

_runtime.Device.synchronize = lambda *_: sys.exit("waited")
fake = ctypes.CDLL(sys.argv[1])
jitgemm.prepare(jitgemm.GemmProblem(5, 136, 272, a_dtype="F32", out_dtype="F32"), "cuda:0")
held = fake.jitgemm_fake_cuda_allocations()
workspace = array("|u1", (1 << 20,), 0x50000000)
print(call(0x10000000, workspace=workspace))
print(call(0x66000000, workspace=workspace))
print(call(0x7F0000000000, workspace=workspace))
print(fake.jitgemm_fake_cuda_allocations() - held)
print(call(0x10000000, "cuda:0"))
"""


@pytest.mark.skipif(not FAKE.exists(), reason="the library's tests are not built")
def test_gpu_arrays_need_no_wait_with_a_workspace_and_are_where_the_driver_says() -> None:
    environment = {
        **os.environ,
        "JITGEMM_DRIVER": str(FAKE),
        "JITGEMM_FAKE_CUDA_DEVICES": "2",
        "JITGEMM_FAKE_CUDA_CAPTURE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", ON_FAKE_GPU, str(FAKE)], env=environment, capture_output=True, text=True, check=False
    )
    assert "waited" in done.stderr, done.stderr
    right, other, host, allocated = done.stdout.splitlines()
    assert right == "None"
    assert "a: 0x66000000 is memory of cuda:1, expected cuda:0" in other
    assert "is it host memory?" in host
    assert allocated == "0"
