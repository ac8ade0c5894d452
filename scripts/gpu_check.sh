#!/usr/bin/env bash
# Measures and tests the GPU code on this machine, in less than 8 minutes. The results go to the folder results beside
# this script, or to the one given as argument, and after each part into an archive beside that. It needs no Go: "make
# gpu-kit" puts it beside the binaries. It runs, in this order: the card's properties; training in bfloat16, and PyTorch
# beside it if a python3 has torch and finds the GPU; the other precisions; two other nets; conformance with a wait
# after each op; the other tests; each kernel's traffic and speed; RNA; fused convolutions; nets of depthwise
# convolutions; PyTorch in the other precisions and compiled. A test that cannot run counts as failed.
#
# RNA_CUDA_LIBS names folders with NVIDIA's libraries, such as a site-packages folder filled by pip, or with the
# stand-in of "make sim". IMAGES names a set of images, as for rna train --data, to measure the loader. PYTHON is the
# Python with torch.
set -euo pipefail
cd "$(dirname "$0")"
results=${1:-results}
mkdir -p "$results"
rm -f "$results"/train-*.json "$results"/pytorch-*.json "$results"/fused-*.json
limit=${LIMIT:-470} # seconds: later work is stopped or left out
python=${PYTHON:-$(command -v python3 || true)}

if [ -z "${RNA_CUDA_LIBS:-}" ] && [ -n "$python" ]; then
	RNA_CUDA_LIBS=$("$python" -c 'import site; print(":".join(site.getsitepackages() + [site.getusersitepackages()]))' 2>/dev/null || true)
	export RNA_CUDA_LIBS
fi
export ONLINERNA_GPU=require
for packed in *.gz; do
	[ ! -e "$packed" ] || gunzip "$packed"
done

# pack writes the archive anew: later parts may hang or lose the card.
pack() {
	tar -czf "$results.tar.gz.new" -C "$(dirname "$results")" "$(basename "$results")"
	mv "$results.tar.gz.new" "$results.tar.gz"
}
begin() { # a part
	pack
	printf '\n== %s (%d s)\n' "$1" "$SECONDS"
}
# within runs a command for the remaining seconds, at most as many as its first argument.
within() {
	local most=$((limit - SECONDS)) seconds=$1
	shift
	if [ "$most" -lt 10 ]; then
		echo "no time is left" >&2
		return 124
	fi
	if $standin; then seconds=$most; fi
	timeout -k 10 $((most < seconds ? most : seconds)) "$@"
}
failed=()

begin devices
./rna devices | tee "$results/devices.txt"
./rna devices --properties "$results/device.json" >/dev/null || echo "cuDNN is older than 9.8 and does not report properties"
standin=false
if grep -q stand-in "$results/devices.txt"; then # which is slow
	standin=true
	limit=${LIMIT:-3600}
fi

skipped='^(TestFault.*|TestPlanChoice)$' # only the stand-in injects faults and knows its fastest plan
skip=(-test.skip "$skipped")
if $standin; then # TensorFloat-32 only rounds the factors of products: other ops are those of float32
	skip=(-test.skip '^TestNet$/^tf32$/^updates|^TestNet$/^tf32$/^ops$/^(map|reduce|reshape|sum_to)$')
fi
: >"$results/tests.txt"
rm -f "$results"/one-*
# tests NAME SECONDS BINARY OPTIONS...: runs a binary's tests. Failed tests are printed, or else the last lines. collect
# adds their output to the others.
tests() {
	local name=$1 seconds=$2 test=$3 out which
	out=$results/one-${name// /-}
	shift 3
	printf '\n== %s\n' "$name" >"$out.txt"
	within "$seconds" "./$test" -test.v "$@" >>"$out.txt" 2>&1 || {
		grep -A 20 -e '--- FAIL' -e '^panic' -e '^fatal' "$out.txt" || tail -20 "$out.txt"
		echo "GPU tests failed: $results/tests.txt has their output" >&2
		which=$(sed -n 's/^--- FAIL: \([^ ]*\).*/\1/p' "$out.txt" | paste -sd ' ')
		echo "$name: ${which:-$(grep -v '^\(FAIL\|exit status .*\|\)$' "$out.txt" | tail -1)}" >"$out.failed"
	}
}
collect() {
	wait
	local f
	cat "$results"/one-*.txt >>"$results/tests.txt"
	for f in "$results"/one-*.failed; do
		[ ! -e "$f" ] || failed+=("$(cat "$f")")
	done
	rm -f "$results"/one-*
}

# A precision is measured if the program supports it.
help=$(./rna bench train --help)
precisions=(bfloat16 float16 tf32 float32)
batch=256
if $standin; then
	work=(--model lenet --steps 1 --warmup 1)
	batch=4
else
	work=(--model resnet50 --steps 30 --warmup 10)
fi
# Each tried plan adds a line to the table: no plans may be known before.
rm -f "$results/plans.tsv"
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export RNA_CUDA_PLANS=$results/plans.tsv XDG_CACHE_HOME=$cache
if [ -d plans ]; then export RNA_CUDA_AHEAD=$PWD/plans; fi # by "make plans"
train() { # a name for the files, a precision, then options
	local to=$1 name=$2 own=()
	shift 2
	if grep -q -e '--precision' <<<"$help"; then own=(--precision "$name"); fi
	within 90 ./rna bench train --device cuda "${work[@]}" --batch "$batch" "${own[@]}" "$@" --json-file "$results/$to-$name.json" --plot "$results/$to-$name.svg" >"$results/$to-$name.txt" 2>&1
}
# fitting is train with the batch that fits on a card with less memory; all that follow then use that one, too.
fitting() {
	local fits
	train "$@" && return
	fits=$(sed -nE 's/.*batch ([0-9]+) fits.*/\1/p' "$results/$1-$2.txt")
	if [ -n "$fits" ] && echo "batch $fits in place of $batch" && batch=$fits && train "$@"; then return; fi
	tail -3 "$results/$1-$2.txt"
	return 1
}
# pytorch measures a precision and a way of compiling.
pytorch() {
	local to="$results/pytorch-$1-$2"
	[ -e "$results/train-$1.json" ] || return 0
	within 150 "$python" bench_pytorch.py --device cuda "${work[@]}" --batch "$batch" --precision "$1" --compile "$2" \
		--json-file "$to.json" >"$to.txt" 2>&1 || { echo "in $1, compiled: $2: no result, see $to.txt" && rm -f "$to.json"; }
}

torch=false
for p in "${precisions[@]}"; do
	begin "training in $p"
	if [ "$p" != float32 ] && ! grep -q -e '--precision' <<<"$help"; then
		echo "skipped: this program supports only float32"
		continue
	fi
	more=()
	if [ -n "${IMAGES:-}" ] && [ "$p" = bfloat16 ]; then more=(--data "$IMAGES"); fi
	fitting train "$p" "${more[@]}" && cat "$results/train-$p.txt" || failed+=("training in $p")
	[ "$p" = bfloat16 ] || continue
	begin "PyTorch in bfloat16"
	if $standin; then
		echo "skipped: the stand-in is not a GPU for PyTorch"
	elif [ -z "$python" ] || ! "$python" -c 'import torch, torchvision; assert torch.cuda.is_available()' 2>/dev/null; then
		echo "skipped: no python3 with torch and torchvision finds the GPU; PYTHON names another"
	else
		torch=true
		pytorch bfloat16 none
	fi
done

unset RNA_CUDA_PLANS
# others SECONDS NET...: trains other nets, whose time is in other kernels, with PyTorch beside them.
others() {
	local seconds=$1 net other
	shift
	if $standin; then return; fi
	for net in "$@"; do
		begin "training of $net in bfloat16"
		other=(--device cuda --model "$net" --batch 128 --precision bfloat16 --steps 20 --warmup 5)
		within "$seconds" ./rna bench train "${other[@]}" --json-file "$results/train-$net.json" >"$results/train-$net.txt" 2>&1 &&
			cat "$results/train-$net.txt" || { tail -3 "$results/train-$net.txt"; failed+=("training of $net"); }
		if $torch; then
			within "$seconds" "$python" bench_pytorch.py "${other[@]}" --json-file "$results/pytorch-$net.json" >"$results/pytorch-$net.txt" 2>&1 ||
				rm -f "$results/pytorch-$net.json"
		fi
	done
}
others 40 vit_b_16 convnext_tiny

begin "conformance, each op waited for"
if $standin; then # the whole suite covers the rest
	RNA_CUDA_SYNC=1 tests "conformance of net" 60 net.test -test.run '^TestNet$/^bfloat16$/^ops$/conv'
else # steps are not captured then
	for p in "${precisions[@]}"; do
		RNA_CUDA_SYNC=1 tests "conformance of net in $p" 120 net.test -test.run "^TestNet\$/^$p\$" \
			-test.skip '^TestNet$/^.*$/^pipeline$' &
	done
fi
collect

begin tests
for test in *.test; do # one for each package
	if [ "$test" = net.test ] && ! $standin; then # side by side
		for p in "${precisions[@]}"; do tests "tests of net in $p" 120 net.test -test.run "^TestNet\$/^$p\$" & done
		wait
		tests "other tests of net" 120 net.test -test.skip "^TestNet\$|^Test(NaNOf)?Fusion|$skipped"
	else
		tests "tests of ${test%.test}" 160 "$test" "${skip[@]}"
	fi
done
collect
if grep -e '--- SKIP' "$results/tests.txt"; then
	echo "these GPU tests could not run: see the reasons in $results/tests.txt" >&2
	failed+=("tests that could not run")
fi
passed=$(grep -c '^--- PASS' "$results/tests.txt" || true)
echo "$passed tests passed"

begin "traffic of each kernel"
if [ -s "$results/plans.tsv" ]; then
	echo "$(wc -l <"$results/plans.tsv") plans of convolutions were tried: $results/plans.tsv"
else
	failed+=("no plan was tried")
fi
within 60 ./rna bench traffic --device cuda --model "${work[1]}" --batch "$batch" --csv "$results/traffic.csv" --json-file "$results/traffic.json" \
	>"$results/traffic.txt" && cat "$results/traffic.txt" || failed+=("traffic")
card=$(sed -n 's/.*"deviceName": *"\([^"]*\)".*/\1/p' "$results/device.json" 2>/dev/null || true)
for key in a100 h100 h200 b200 4090; do
	case "${card,,}" in *"$key"*)
		key=${key/4090/rtx4090}
		within 60 ./rna bench traffic --device-name "$key" --model "${work[1]}" --batch "$batch" --csv "$results/computed.csv" >"$results/computed.txt" && cat "$results/computed.txt" || failed+=("computed traffic")
		break
		;;
	esac
done

begin "speed of RNA's parts"
time=300ms
if $standin; then time=1x; fi # speed does not matter
within 90 ./space.test -test.run '^$' -test.bench . -test.benchtime "$time" 2>&1 | tee "$results/benchmarks.txt" || failed+=("RNA's parts")

begin "RNA beside training"
options=(--device cuda --rna-device cuda --window 2,5,10,20,50)
if $standin; then options=(--dim 100000 --window 2,5 --repeats 1); fi
within 90 ./rna bench rna --quiet "${options[@]}" --plot "$results/rna.svg" --csv "$results/rna.csv" --json-file "$results/rna.json" | tee "$results/rna.txt" || failed+=("RNA beside training")

begin "training in bfloat16, convolutions fused where that is faster"
RNA_CUDA_FUSE=timed train fused bfloat16 && cat "$results/fused-bfloat16.txt" || failed+=("training with fused convolutions")
if ! $standin; then
	tests "tests of fused convolutions" 120 net.test -test.run '^Test(NaNOf)?Fusion'
	collect
fi

# Their convolutions are depthwise, for which cuDNN takes longer to choose plans.
others 90 efficientnet_b0 mobilenet_v3_large

begin "PyTorch in other precisions, and compiled"
if $torch; then
	for run in bfloat16:default float16:none tf32:none bfloat16:max-autotune; do pytorch "${run%:*}" "${run#*:}"; done
else
	echo skipped
fi

begin "in short"
{
	grep -E '^(NVIDIA driver|cuBLAS|NVRTC|cuDNN|GPU [0-9])' "$results/devices.txt"
	echo "$passed tests passed"
	if [ -s "$results/rna.csv" ]; then
		awk -F, '$2 == "forward+backward" { batch = $4 }
			$1 ~ /^cuda/ && $2 == "online" { printf "RNA, N = %d: a pass takes %.3g ms, %.0f %% of the memory'"'"'s bandwidth", $3, 1e3 * $7, 100 * $18
			if ($20 != "") printf ", %.1f %% of a forward and backward pass of batch %d", 100 * $20, batch
			print "" }' "$results/rna.csv"
	fi
	if ls "$results"/train-*.json >/dev/null 2>&1; then
		echo
		if [ -s "$results/fused-bfloat16.json" ]; then
			echo "bfloat16 with fused convolutions: $(grep -E '^images/s' "$results/fused-bfloat16.txt")"
		fi
		./rna bench table "$results"/train-*.json $(ls "$results"/pytorch-*.json 2>/dev/null)
	fi
	if grep -q '^all of this ran on this card' "$results/tests.txt"; then
		printf '\nran on this card:\n'
		sed -n '/^all of this ran on this card/,/^$/p' "$results/tests.txt" | awk '/^\|/ && !seen[$0]++'
	fi
	grep -E '^(step|A step|Copies)' "$results/traffic.txt" 2>/dev/null || true
	for part in "${failed[@]}"; do echo "FAILED: $part"; done
	echo "after $SECONDS seconds"
} | tee "$results/table.txt"
pack
echo "all results: $results.tar.gz"
[ ${#failed[@]} -eq 0 ]
