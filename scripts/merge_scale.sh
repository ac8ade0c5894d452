#!/usr/bin/env bash
# Merges synthetic models of SIZES GB in sparse files, three of each, and prints the largest memory that it took, and its
# time beside that of plain reads of the inputs and a plain write of the output on the same disk, in turn. Where the
# process may make memory cgroups, rna runs in one of 1 GB. Needs python3, GNU time and the disk for one output.
#
#   merge_scale.sh RNA FOLDER 8 40
set -euo pipefail
rna=$(realpath "$1") folder=$2
shift 2
dir=$(mktemp -d "$folder/merge-scale.XXXXXX")
group=
clean() {
	rm -rf "$dir"
	[ -z "$group" ] || rmdir "$group" 2>/dev/null || true
}
trap clean EXIT
trap 'exit 130' INT TERM
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	group=$root/rna-merge-scale-$$ limit=memory.limit_in_bytes
	[ "$root" = /sys/fs/cgroup ] && limit=memory.max
	if mkdir "$group" 2>/dev/null && echo $((1 << 30)) 2>/dev/null >"$group/$limit"; then
		break
	fi
	rmdir "$group" 2>/dev/null || true
	group=
done
[ -n "$group" ] && echo "in a memory cgroup of 1 GB" || echo "no cgroup may be made here: the resident memory is measured"

# limited runs a command in the cgroup, and prints its seconds and its largest resident memory in KB.
limited() {
	sh -c '[ -z "$1" ] || echo $$ >"$1/cgroup.procs"; shift; exec /usr/bin/time -f "%e %M" "$@"' sh "$group" "$@" 2>&1 >/dev/null | tail -1
}
for size in "$@"; do
	python3 - "$dir" "$size" <<-'END'
		import json, os, struct, sys
		dir, size = sys.argv[1], float(sys.argv[2])
		n = int(size * 1e9 / 2 / 40 / 4096) # of 40 matrices of BF16 with 4096 columns
		head, at = {}, 0
		for i in range(40):
		    head[f"model.layers.{i}.weight"] = {"dtype": "BF16", "shape": [n, 4096], "data_offsets": [at, at + n * 8192]}
		    at += n * 8192
		head = json.dumps(head).encode()
		head += b" " * (-len(head) % 8)
		for k in range(3):
		    with open(f"{dir}/{k}.safetensors", "wb") as f:
		        f.write(struct.pack("<Q", len(head)) + head)
		        f.truncate(8 + len(head) + at)
		        for i in range(0, at, at // 16): # some numbers, here and there
		            f.seek(8 + len(head) + i)
		            f.write(os.urandom(4096).translate(bytes(b & 0xbf for b in range(256))))
	END
	for turn in 1 2; do
		sync
		reads=$(limited sh -c "for k in 0 1 2; do dd if=$dir/\$k.safetensors of=/dev/null bs=4M 2>/dev/null; done")
		writes=$(limited dd if=/dev/zero of="$dir/plain" bs=4M count=$((size * 1000 / 4 )) conv=fsync status=none)
		rm "$dir/plain"
		read -r seconds memory < <(limited "$rna" merge "$dir"/{0,1,2}.safetensors -o "$dir/out" --sync --quiet)
		case "$memory" in *[!0-9]*|"") echo "rna merge failed: $seconds $memory" >&2; exit 1 ;; esac
		rm -r "$dir/out"
		awk -v g="$size" -v t="$turn" -v r="${reads% *}" -v w="${writes% *}" -v m="$seconds" -v k="$memory" 'BEGIN {
			printf "3 models of %s GB, turn %d: reads %.1f s, write %.1f s, rna merge %.1f s, %.0f %% of the speed of both; %.0f MB\n",
				g, t, r, w, m, 100*(r + w)/m, k/1024
			exit k > 1048576 }'
	done
	rm "$dir"/*.safetensors
done
