#!/usr/bin/env bash
# Interprets the PTX that NVIDIA's NVRTC, downloaded with pip into the cache (130 MB), writes for the kernels, and
# compares the results with the stand-in's. It replays the launches recorded in the folder given as argument, or else
# records those of the conformance suite and others first. With -short behind the folder most launches run in one order
# of threads. It also counts the instructions of a training step's kernels and compares them with the table of package
# datasheet, or writes that with ONLINERNA_WRITE=1. Needs Go, gcc and pip, and "make sim" for recording.
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
RNA_SIM_RECORD="$launches" RNA_CUDA_LIBS="$nvrtc" go test -count=1 -tags gpu -run '^TestPTX' "${@:2}" -v ./cuda/check/launches | grep -v '^ *\(===\|--- PASS: .*/\)'
compare=-compare
if [ "${ONLINERNA_WRITE:-}" = 1 ]; then compare=; fi
go build -tags gpu -o bin/count ./cuda/check/count
RNA_CUDA_LIBS="$nvrtc" bin/count $compare
