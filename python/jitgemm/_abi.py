# SPDX-License-Identifier: Apache-2.0
"""The C ABI as ctypes: constants, structs and functions of ``jitgemm/jitgemm.h``, one to one.

Nothing here decides anything. ``tests/test_abi.py`` compares every constant, field offset and
function with the header. ctypes releases the GIL during each call.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from . import _library, errors

STATUS_OK = 0
STATUS_NOT_READY = 3

ARCH_OF_DEVICE = 0
ARCH_SM_90A = 900
ARCH_SM_100A = 1000
ARCH_SM_100F = 1001
ARCH_SM_103A = 1030
ARCH_SM_103F = 1031

F8_E4M3 = 1
F8_E5M2 = 2
F8_E8M0 = 3
F16 = 4
BF16 = 5
F32 = 6

SCALE_MAJOR_ROW = 0
SCALE_MAJOR_COLUMN = 1
SCALE_MAJOR_PACKED = 2

SCALE_VALUES_ANY = 0
SCALE_VALUES_POWER_OF_TWO = 1

GROUPS_ROW_INDICES = 1
GROUPS_END_OFFSETS = 2
GROUPS_ROW_POINTERS = 3
GROUPS_MASKED = 4
GROUPS_COLUMNS = 5

M_EXACT = 0
M_CLASS = 1
M_ANY = 2

LAUNCH_PROGRAMMATIC_DEPENDENCE = 1
LAUNCH_CHECK_ADDRESSES = 2

LogCallback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)


class ContextOptions(ctypes.Structure):
    """``jitgemm_context_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("cache_folder", c_char_p),
        ("cache_mode", c_char_p),
        ("nvrtc_library", c_char_p),
        ("driver_library", c_char_p),
        ("template_folder", c_char_p),
        ("log_level", c_char_p),
        ("sim_numerics", c_char_p),
        ("sim_seed", c_char_p),
        ("sim_threads", c_char_p),
        ("sim_sanitize", c_char_p),
        ("log", LogCallback),
        ("log_user", c_void_p),
        ("tuning_database", c_char_p),
    ]


class GemmProblem(ctypes.Structure):
    """``jitgemm_gemm_problem``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("a_dtype", c_int32),
        ("b_dtype", c_int32),
        ("scale_dtype", c_int32),
        ("out_dtype", c_int32),
        ("group_n", c_int32),
        ("group_k", c_int32),
        ("a_scale_major", c_int32),
        ("b_scale_major", c_int32),
        ("scale_values", c_int32),
        ("m_policy", c_int32),
        ("lda", c_int64),
        ("ldb", c_int64),
        ("ldo", c_int64),
        ("a_scale_ld", c_int64),
        ("b_scale_ld", c_int64),
        ("alignment", c_int32),
        ("batch_invariant", c_int32),
        ("a_code_dtype", c_int32),
        ("reserved", c_int32),
    ]


class GemmArguments(ctypes.Structure):
    """``jitgemm_gemm_arguments``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("a", c_void_p),
        ("b", c_void_p),
        ("a_scales", c_void_p),
        ("b_scales", c_void_p),
        ("out", c_void_p),
        ("m", c_int64),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    ]


class GroupedGemmProblem(ctypes.Structure):
    """``jitgemm_grouped_gemm_problem``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("groups", c_int64),
        ("expected_m", c_int64),
        ("lda", c_int64),
        ("ldb", c_int64),
        ("ldo", c_int64),
        ("a_scale_ld", c_int64),
        ("b_scale_ld", c_int64),
        ("a_group_stride", c_int64),
        ("b_group_stride", c_int64),
        ("out_group_stride", c_int64),
        ("a_scale_group_stride", c_int64),
        ("b_scale_group_stride", c_int64),
        ("layout", c_int32),
        ("a_dtype", c_int32),
        ("b_dtype", c_int32),
        ("scale_dtype", c_int32),
        ("out_dtype", c_int32),
        ("group_n", c_int32),
        ("group_k", c_int32),
        ("a_scale_major", c_int32),
        ("b_scale_major", c_int32),
        ("scale_values", c_int32),
        ("m_policy", c_int32),
        ("alignment", c_int32),
        ("row_alignment", c_int32),
        ("zero_ungrouped", c_int32),
        ("count_invalid", c_int32),
        ("batch_invariant", c_int32),
    ]


class GroupedGemmArguments(ctypes.Structure):
    """``jitgemm_grouped_gemm_arguments``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("a", c_void_p),
        ("b", c_void_p),
        ("a_scales", c_void_p),
        ("b_scales", c_void_p),
        ("group_rows", c_void_p),
        ("out", c_void_p),
        ("m", c_int64),
        ("invalid_count", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    ]


TextCallback = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)


class SimBuffer(ctypes.Structure):
    """``jitgemm_sim_buffer``"""

    _fields_ = [
        ("name", c_char_p),
        ("data", c_void_p),
        ("bytes", c_size_t),
    ]


class SimRunArguments(ctypes.Structure):
    """``jitgemm_sim_run_arguments``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("ptx", c_char_p),
        ("launch_json", c_char_p),
        ("folder", c_char_p),
        ("buffers", POINTER(SimBuffer)),
        ("buffer_count", c_size_t),
        ("report", TextCallback),
        ("report_user", c_void_p),
    ]


_OUT = POINTER(c_void_p)

# name -> (result, parameters)
PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "jitgemm_version": (c_char_p, []),
    "jitgemm_status_name": (c_char_p, [c_int32]),
    "jitgemm_last_error": (c_char_p, []),
    "jitgemm_context_create": (c_int32, [POINTER(ContextOptions), _OUT]),
    "jitgemm_context_release": (None, [c_void_p]),
    "jitgemm_device_open": (c_int32, [c_void_p, c_char_p, c_int32, _OUT]),
    "jitgemm_device_release": (None, [c_void_p]),
    "jitgemm_device_arch": (c_int32, [c_void_p]),
    "jitgemm_device_synchronize": (c_int32, [c_void_p, c_void_p]),
    "jitgemm_buffer_create": (c_int32, [c_void_p, c_size_t, _OUT]),
    "jitgemm_buffer_release": (None, [c_void_p]),
    "jitgemm_buffer_address": (c_void_p, [c_void_p]),
    "jitgemm_buffer_write": (c_int32, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "jitgemm_buffer_read": (c_int32, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "jitgemm_m_class_bound": (c_int64, [c_int64]),
    "jitgemm_gemm_plan": (c_int32, [POINTER(GemmProblem), c_int32, c_char_p, POINTER(c_size_t)]),
    "jitgemm_gemm_compile": (c_int32, [c_void_p, POINTER(GemmProblem), c_int32]),
    "jitgemm_gemm_prepare": (c_int32, [c_void_p, POINTER(GemmProblem), _OUT]),
    "jitgemm_gemm_find": (c_int32, [c_void_p, POINTER(GemmProblem), c_void_p, _OUT]),
    "jitgemm_operation_release": (None, [c_void_p]),
    "jitgemm_operation_workspace": (c_int32, [c_void_p, POINTER(c_uint64), POINTER(c_uint64)]),
    "jitgemm_operation_workspace_for": (c_int32, [c_void_p, c_int64, POINTER(c_uint64), POINTER(c_uint64)]),
    "jitgemm_operation_describe": (c_int32, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "jitgemm_gemm_launch": (c_int32, [c_void_p, POINTER(GemmArguments), c_void_p]),
    "jitgemm_gemm_check_scales": (c_int32, [c_void_p, POINTER(GemmArguments)]),
    "jitgemm_grouped_gemm_plan": (c_int32, [POINTER(GroupedGemmProblem), c_int32, c_char_p, POINTER(c_size_t)]),
    "jitgemm_grouped_gemm_compile": (c_int32, [c_void_p, POINTER(GroupedGemmProblem), c_int32]),
    "jitgemm_grouped_gemm_prepare": (c_int32, [c_void_p, POINTER(GroupedGemmProblem), _OUT]),
    "jitgemm_grouped_gemm_find": (c_int32, [c_void_p, POINTER(GroupedGemmProblem), c_void_p, _OUT]),
    "jitgemm_grouped_gemm_launch": (c_int32, [c_void_p, POINTER(GroupedGemmArguments), c_void_p]),
    "jitgemm_grouped_gemm_check_scales": (c_int32, [c_void_p, POINTER(GroupedGemmArguments)]),
    "jitgemm_sim_run": (c_int32, [POINTER(SimRunArguments)]),
}


def _load() -> Any:
    library = ctypes.CDLL(_library.find_library())
    for name, (result, parameters) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
    return library


lib: Any = _load()


def last_error(status: int) -> errors.Error:
    """The exception for the calling thread's last failure."""
    message = lib.jitgemm_last_error().decode("utf-8", "replace")
    return errors.from_status(status, lib.jitgemm_status_name(status).decode(), message)


def check(status: int) -> None:
    """Raises unless the status is OK."""
    if status != STATUS_OK:
        raise last_error(status)


def read_text(fill: Any, *arguments: Any) -> str:
    """Calls a function whose last two parameters are ``char* text, size_t* length``."""
    length = c_size_t(0)
    check(fill(*arguments, None, ctypes.byref(length)))
    text = ctypes.create_string_buffer(length.value)
    check(fill(*arguments, text, ctypes.byref(length)))
    return text.value.decode("utf-8", "replace")
