#!/usr/bin/env bash
# Makes cuDNN's plans of ResNet-50 in bfloat16 at batch 256 for cards that make gpu-kit carries plans for, without a GPU,
# in the folder given as argument. cuDNN is downloaded with pip into the cache (1.4 GB). It takes minutes a card. Needs
# x86-64, Go, gcc and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
libraries="$PWD/bin/nodriver"
mkdir -p "$libraries"
gcc -O1 -Wall -Wextra -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$libraries/libcuda.so.1" cuda/check/sim/src/nodriver.c
libraries="$libraries:$(scripts/fetch_nvidia.sh nvidia-cuda-nvrtc 13.5.37 nvrtc)"
libraries="$libraries:$(scripts/fetch_nvidia.sh nvidia-cublas 13.10.0.20 cublas)"
libraries="$libraries:$(scripts/fetch_nvidia.sh nvidia-cudnn-cu13 9.28.0.42 cudnn)"
for card in ${CARDS:-h100 h200 a100}; do
	RNA_CUDA_LIBS="$libraries" bin/rna plans --card "$card" --model "${MODEL:-resnet50}" --batch "${BATCH:-256}" -o "$1"
done
