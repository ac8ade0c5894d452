#!/usr/bin/env bash
# Asks NVIDIA's cuDNN, fetched with pip into the cache (1.4 GB), for plans of all graphs that nets issue, without a GPU: see
# cuda/internal/cudnncheck, which gets the arguments. x86-64 alone; it needs Go, gcc and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "cudnn_check needs Linux on x86-64" >&2; exit 1; }
cache="${XDG_CACHE_HOME:-$HOME/.cache}/onlinerna"
libraries="$PWD/bin/nodriver"
mkdir -p "$libraries" "$cache"
gcc -O1 -Wall -Wextra -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$libraries/libcuda.so.1" cuda/sim/src/nodriver.c

# fetch PACKAGE VERSION NAME: into the folder NAME-VERSION of the cache, all or nothing.
fetch() {
	local folder="$cache/$3-$2" new
	if [ ! -d "$folder" ]; then
		new=$(mktemp -d "$cache/new-XXXXXX")
		PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --no-compile --only-binary=:all: --target "$new" "$1==$2"
		mv "$new" "$folder"
	fi
	libraries="$libraries:$folder"
}
fetch nvidia-cuda-nvrtc 13.5.37 nvrtc
fetch nvidia-cublas 13.10.0.20 cublas
fetch nvidia-cudnn-cu13 9.28.0.42 cudnn
CGO_ENABLED=1 GOFLAGS="-buildvcs=false -trimpath" CGO_CFLAGS="-O2 -g -I$PWD/cuda/include" go build -tags gpu -o bin/cudnncheck ./cuda/internal/cudnncheck
RNA_CUDA_LIBS="$libraries" bin/cudnncheck "$@"
