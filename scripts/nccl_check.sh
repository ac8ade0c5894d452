#!/usr/bin/env bash
# Asks NVIDIA's NCCL, downloaded with pip into the cache (520 MB), for its version and for IDs, which need no GPU. Needs
# Linux on x86-64, Go, gcc and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "nccl_check needs Linux on x86-64" >&2; exit 1; }
cache="${XDG_CACHE_HOME:-$HOME/.cache}/onlinerna"
mkdir -p "$cache"
for package in nvidia-nccl-cu12==2.18.3 nvidia-nccl-cu13==2.32.3; do
	folder="$cache/nccl-${package#*==}"
	[ ! -d "$folder" ] || continue
	new=$(mktemp -d "$cache/new-XXXXXX")
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --no-compile --only-binary=:all: --target "$new" "$package"
	mv "$new" "$folder"
done
CGO_ENABLED=1 GOFLAGS="-buildvcs=false -trimpath" CGO_CFLAGS="-O2 -g -I$PWD/cuda/include" RNA_CUDA_LIBS="$PWD/bin/sim" go test -tags gpu -count=1 -run '^TestWithoutGPU$' -v ./cuda/nccl |
	tee /dev/stderr | { [ "$(grep -c "NVIDIA's NCCL .* answers: ok")" = 2 ]; }
