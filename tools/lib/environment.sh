# SPDX-License-Identifier: Apache-2.0
# Sourced by tools/quickstart and tools/check: packages, NVRTC, the development cache. Needs the repository as the
# current folder.

export JITGEMM_CACHE_DIR="${JITGEMM_CACHE_DIR:-$PWD/cache}"

# The version that the kernels are tested with; used where no CUDA toolkit is found.
nvrtc_version=13.0.88

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# install_missing COMMAND:PACKAGE ... -- HEADER:PACKAGE ...
install_missing() {
  local kind=command missing=()
  for pair in "$@"; do
    if [ "$pair" = -- ]; then
      kind=header
      continue
    fi
    local what="${pair%%:*}" package="${pair#*:}"
    if [ $kind = command ]; then
      command -v "$what" >/dev/null || missing+=("$package")
    else
      { [ -e "/usr/include/$what" ] || [ -e "/usr/local/include/$what" ]; } || missing+=("$package")
    fi
  done
  if [ ${#missing[@]} = 0 ]; then
    echo "nothing is missing"
    return
  fi
  if ! command -v apt-get >/dev/null; then
    echo "please install: ${missing[*]}" >&2
    return 1
  fi
  echo "installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Uses the toolkit's NVRTC where there is one, else unpacks the pinned wheel into build/nvrtc.
find_nvrtc() {
  if [ -n "${JITGEMM_NVRTC:-}" ]; then
    echo "JITGEMM_NVRTC is $JITGEMM_NVRTC"
    return
  fi
  local file
  for file in /usr/local/cuda/lib64/libnvrtc.so.1[23] /usr/local/cuda-1[23]*/lib64/libnvrtc.so.1[23]; do
    if [ -e "$file" ]; then
      echo "found $file"
      export JITGEMM_NVRTC="$file"
      return
    fi
  done
  file="$PWD/build/nvrtc/nvidia/cu13/lib/libnvrtc.so.13"
  if [ ! -e "$file" ]; then
    echo "no CUDA toolkit found; fetching the Python package nvidia-cuda-nvrtc $nvrtc_version"
    python3 -m pip --version >/dev/null 2>&1 || install_missing pip3:python3-pip --
    local wheels
    wheels="$(mktemp -d)"
    python3 -m pip download -q --no-deps --disable-pip-version-check -d "$wheels" "nvidia-cuda-nvrtc==$nvrtc_version"
    mkdir -p build/nvrtc
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])' "$wheels"/*.whl build/nvrtc
    rm -r "$wheels"
  fi
  echo "using $file"
  export JITGEMM_NVRTC="$file"
}
