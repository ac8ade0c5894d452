#!/usr/bin/env bash
# Asks NVIDIA's cuDNN, downloaded with pip into the cache (1.4 GB), for plans of all graphs of nets, without a GPU. The
# arguments are those of cuda/check/cudnn. Needs x86-64, Go, gcc and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "cudnn_check needs Linux on x86-64" >&2; exit 1; }
libraries="$PWD/bin/nodriver"
mkdir -p "$libraries"
gcc -O1 -Wall -Wextra -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$libraries/libcuda.so.1" cuda/check/sim/src/nodriver.c

libraries="$libraries:$(scripts/fetch_nvidia.sh nvidia-cuda-nvrtc 13.5.37 nvrtc)"
libraries="$libraries:$(scripts/fetch_nvidia.sh nvidia-cublas 13.10.0.20 cublas)"
libraries="$libraries:$(scripts/fetch_nvidia.sh nvidia-cudnn-cu13 9.28.0.42 cudnn)"
CGO_ENABLED=1 GOFLAGS="-buildvcs=false -trimpath" CGO_CFLAGS="-O2 -g -I$PWD/cuda/include" go build -tags gpu -o bin/cudnncheck ./cuda/check/cudnn
RNA_CUDA_LIBS="$libraries" bin/cudnncheck "$@"
