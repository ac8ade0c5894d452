#!/usr/bin/env bash
# Runs what NVIDIA's NVRTC, fetched with pip into the cache (130 MB), makes of the kernels, in an interpreter of PTX, and compares it with the
# stand-in: the launches recorded in the folder named as argument, or else those of the conformance suite and others, which it records first.
# It needs Go, gcc and pip, and "make sim" for that.
set -euo pipefail
cd "$(dirname "$0")/.."
nvrtc=$(scripts/fetch_nvidia.sh nvidia-cuda-nvrtc 13.5.37 nvrtc)
export CGO_ENABLED=1 GOFLAGS="-buildvcs=false -trimpath" CGO_CFLAGS="-O2 -g -I$PWD/cuda/include"
launches=${1:-}
if [ -z "$launches" ]; then
	launches=$(mktemp -d)
	trap 'rm -rf "$launches"' EXIT
	record() { RNA_SIM_RECORD="$launches" RNA_CUDA_LIBS="$PWD/bin/sim" ONLINERNA_GPU=require go test -count=1 -tags gpu -timeout 0 "$@"; }
	record -run '^(TestNet|TestFusion.*|TestLossScale|TestNarrowCopy|TestNormOfManyBlocks|TestObserve)$' ./cuda/net
	record ./cuda/space
	record -run '^(TestRanksOnGPU|TestFloat16OnGPU)$' ./cmd/rna
fi
RNA_SIM_RECORD="$launches" RNA_CUDA_LIBS="$nvrtc" go test -count=1 -tags gpu -run '^TestPTX' -v ./cuda/check/launches | grep -v '^ *\(===\|--- PASS: .*/\)'
