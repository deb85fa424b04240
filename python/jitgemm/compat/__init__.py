# SPDX-License-Identifier: Apache-2.0
"""Drop-ins for callers of other libraries: ``flashinfer``, ``vllm``, ``deep_gemm``.

Each module has functions of that project by name, argument order and defaults, so that a caller
changes one import. They serve any shape, apply float32 scales exactly, and raise
:class:`jitgemm.Unsupported` for an argument that they would otherwise have to ignore. torch tensors
and numpy arrays alike; m may vary from call to call (m_policy ``"class"``).
"""
