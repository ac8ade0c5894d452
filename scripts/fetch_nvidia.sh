#!/usr/bin/env bash
# fetch_nvidia.sh PACKAGE VERSION NAME: downloads a package of NVIDIA's with pip into the cache's folder NAME-VERSION,
# atomically, and prints that folder.
set -euo pipefail
cache="${XDG_CACHE_HOME:-$HOME/.cache}/onlinerna"
folder="$cache/$3-$2"
if [ ! -d "$folder" ]; then
	mkdir -p "$cache"
	new=$(mktemp -d "$cache/new-XXXXXX")
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --no-compile --only-binary=:all: --target "$new" "$1==$2" >&2
	mv "$new" "$folder"
fi
echo "$folder"
