#!/usr/bin/env bash
# Tests the kernels of level avx512bf16 or amx, and their callers, on a processor that Bochs emulates, whichever this
# machine has: scripts/bochs_check.sh LEVEL [packages and options of go test, instead of the usual ones]. Bochs is built
# once, in minutes, from Debian's sources into the cache. Needs Debian on x86-64 and Go; installs g++, make, patch,
# xorriso and isolinux if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1-}" in
avx512bf16 | amx) level=$1 && shift ;;
*)
	echo "usage: scripts/bochs_check.sh avx512bf16|amx [packages and options of go test]" >&2
	exit 2
	;;
esac
if [ "$(uname -sm)" != "Linux x86_64" ] || ! command -v apt-get >/dev/null; then
	echo "bochs_check needs Debian on x86-64" >&2
	exit 1
fi
version=3.0+dfsg sum=78f6c73d4a6472d5130a87ab9dc306d02c7c71ed8e25b3a8ef642e2a7acd282b
machine="${XDG_CACHE_HOME:-$HOME/.cache}/onlinerna/bochs-$version-$(sha256sum scripts/bochs.patch | cut -c 1-8)"
mkdir -p "$(dirname "$machine")"

# build: the emulator, a kernel and a boot loader, atomically.
build() {
	local new mirror package scripts="$PWD/scripts" sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-upgrade g++ make patch xz-utils xorriso isolinux syslinux-common >/dev/null
	new=$(mktemp -d "$machine-XXXXXX")
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' | head -1)
	(
		cd "$new"
		/usr/lib/apt/apt-helper -qq download-file "${mirror%/}/pool/main/b/bochs/bochs_$version.orig.tar.xz" bochs.tar.xz "SHA256:$sum"
		package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p')
		apt-get -qq download "$package"
		dpkg-deb -x "$package"_*.deb package
		mkdir source && tar xf bochs.tar.xz -C source --strip-components 1
		cd source
		patch -s -p1 <"$scripts/bochs.patch"
		CXXFLAGS=-O2 CFLAGS=-O2 ./configure --with-nogui --enable-cpu-level=6 --enable-x86-64 --enable-avx --enable-evex --enable-amx \
			--enable-all-optimizations --disable-stats --disable-docbook --disable-xpm >../log 2>&1
		make -j"$(nproc)" >>../log 2>&1 || { tail ../log >&2; exit 1; }
	)
	mkdir "$new/machine"
	cp "$new/source/bochs" /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$new/machine"
	cp "$new/source/bios/bios.bin-1.13.0" "$new/machine/bios"
	cp "$new/source/bios/vgabios-cirrus.bin-1.13.0" "$new/machine/vgabios"
	cp "$new"/package/boot/vmlinuz-* "$new/machine/linux"
	rm -rf "$machine"
	mv "$new/machine" "$machine"
	rm -rf "$new"
}
if [ ! -d "$machine" ] || ! command -v xorriso >/dev/null; then build; fi

export CGO_ENABLED=0 RNA_CPU=$level
go build -ldflags '-s -w' -o bin/emulated ./internal/emulated
emulated() { go test -count=1 -timeout 60m -short -ldflags '-s -w' -exec "$PWD/bin/emulated -machine $machine" "$@"; }
if [ $# -gt 0 ]; then
	emulated "$@"
	exit
fi
if [ "$level" = amx ]; then # where it differs from avx512
	emulated -run 'AMX|Level|Choose|Refused|Tile|Turn|Pairs|Split|Terms' ./internal/simd ./nn/device/cpu/internal/kern
	emulated ./nn/device/cpu/internal/product ./nn/device/cpu/internal/rows
	emulated -run '^(TestNarrowDevice|TestThreadsDoNotMatterToNarrow)$/^amx$|^TestNarrowProducts$|^TestParts$|^TestFloat32Option$|Tiles$' \
		./nn/device/cpu
	emulated -run '^TestAutocast$' ./nn/zoo
	exit
fi
check() { emulated -skip '/^(go|avx2|amx)$' "$@"; } # every processor runs go and avx2
. scripts/kernel_tests.sh
