#!/usr/bin/env bash
# Builds for arm64 and tests its kernels and their callers under qemu-user. Needs Go and apt-get.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOOS=linux GOARCH=arm64

if ! command -v qemu-aarch64 >/dev/null; then
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq qemu-user
fi
go vet ./internal/... ./nn/device/cpu/... ./rna/...

check() { go test -timeout 60m -short -exec qemu-aarch64 "$@"; }
GOOS=darwin go vet ./internal/parallel
. scripts/kernel_tests.sh
