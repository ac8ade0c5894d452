#!/usr/bin/env bash
# Runs the GPU suite and the benchmarks on this machine and writes what they say to the folder results beside it, or to
# the one named as argument. It needs no Go: "make gpu-check" puts it beside the binaries. A test that cannot run fails.
#
# RNA_CUDA_LIBS names folders with NVIDIA's libraries, as a site-packages folder where pip put them, or with
# the stand-in of "make sim".
set -euo pipefail
cd "$(dirname "$0")"
results=${1:-results}
mkdir -p "$results"

if [ -z "${RNA_CUDA_LIBS:-}" ] && python=$(command -v python3); then
	RNA_CUDA_LIBS=$("$python" -c 'import site; print(":".join(site.getsitepackages() + [site.getusersitepackages()]))' 2>/dev/null || true)
	export RNA_CUDA_LIBS
fi
export ONLINERNA_GPU=require
for program in gpu.test rna; do
	[ -x "$program" ] || gunzip "$program.gz"
done

echo "== devices"
./rna devices | tee "$results/devices.txt"

echo "== tests"
./gpu.test -test.v -test.timeout 20m >"$results/tests.txt" 2>&1 || {
	grep -A 20 -e '--- FAIL' -e '^panic' -e '^fatal' "$results/tests.txt" || tail -20 "$results/tests.txt"
	echo "GPU tests failed: $results/tests.txt has all they say" >&2
	exit 1
}
# Faults on demand are the stand-in's.
if grep -e '--- SKIP' "$results/tests.txt" | grep -v -e '--- SKIP: TestFault'; then
	echo "these GPU tests could not run: $results/tests.txt says why" >&2
	exit 1
fi
echo "$(grep -c '^--- PASS' "$results/tests.txt") tests passed"

echo "== benchmarks"
time=1s
if grep -q stand-in "$results/devices.txt"; then time=1x; fi # there is nothing to measure
./gpu.test -test.run '^$' -test.bench . -test.benchtime "$time" -test.timeout 20m 2>&1 | tee "$results/benchmarks.txt"

echo "== RNA beside training"
options=(--device cuda)
if grep -q stand-in "$results/devices.txt"; then options=(--dim 100000 --window 2,5 --repeats 1); fi
./rna bench rna --quiet "${options[@]}" --svg "$results/rna.svg" --csv "$results/rna.csv" --json "$results/rna.json" | tee "$results/rna.txt"
