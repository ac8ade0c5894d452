#!/usr/bin/env bash
# Runs the repository's fuzz targets, which share a number of seconds: scripts/fuzz.sh [seconds] [pattern of packages]
# A failing input is written to testdata/fuzz beside its target and becomes a case of its package's tests.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
packages=${2:-.}

mapfile -t targets < <(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -Ho '^func Fuzz[A-Za-z0-9_]*' |
	sed -E 's|^(.*)/[^/]*:func (.*)$|./\1 \2|' | grep -E "$packages" | sort)
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz target in packages $packages" >&2; exit 1; }
each=$((seconds * 1000 / ${#targets[@]}))
failed=0
for t in "${targets[@]}"; do
	read -r package name <<<"$t"
	said=$(go test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "${each}ms" -fuzzminimizetime 10x 2>&1) ||
		{ echo "$said"; failed=$((failed + 1)); }
	printf '%-28s %-22s %s\n' "$package" "$name" "$(grep -oE 'execs: [0-9]+' <<<"$said" | tail -1)"
done
echo "${#targets[@]} targets in ${SECONDS} s, $failed failed"
[ "$failed" = 0 ]
