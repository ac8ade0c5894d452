// Package hostmemory finds the free memory of the host.
package hostmemory

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// least is the smallest estimate: a system near its limit reports nearly 0 while it reclaims caches.
const least = 64 << 20

// Free estimates the bytes of host memory available without swapping, at least 64 MiB: the system's, or less if a
// control group limits the process. 0 if unknown.
func Free() int64 { return freeIn(os.DirFS("/")) }

func freeIn(root fs.FS) int64 {
	free := int64(math.MaxInt64)
	read := func(file string) string {
		b, _ := fs.ReadFile(root, file) // a missing file means no limit
		return string(b)
	}
	for line := range strings.Lines(read("proc/meminfo")) {
		if kB, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kB), " kB"), 10, 64); err == nil {
				free = n << 10
			}
		}
	}
	if free == math.MaxInt64 {
		return 0
	}
	for line := range strings.Lines(read("proc/self/cgroup")) { // hierarchy:controllers:path
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[1] == "": // version 2
			free = min(free, groupFree(read, "sys/fs/cgroup", part[2], "memory.max", "memory.current", ""))
		case strings.Contains(","+part[1]+",", ",memory,"):
			free = min(free, groupFree(read, "sys/fs/cgroup/memory", part[2], "memory.limit_in_bytes",
				"memory.usage_in_bytes", "total_"))
		}
	}
	return max(free, least)
}

// groupFree is the memory left by the limits of a control group and its parents: caches count as free, as in
// MemAvailable. In a container the path may be the host's, but only the mount itself is visible. The prefix is that of
// numbers in memory.stat that include the group's children.
func groupFree(read func(string) string, mount, group, limit, used, prefix string) int64 {
	free := int64(math.MaxInt64)
	for {
		dir := path.Join(mount, group)
		number := func(text string) (int64, bool) {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n, err == nil
		}
		most, limited := number(read(dir + "/" + limit)) // not "max"
		now, known := number(read(dir + "/" + used))
		if limited && known {
			for line := range strings.Lines(read(dir + "/memory.stat")) {
				name, value, _ := strings.Cut(line, " ")
				switch name {
				case prefix + "inactive_file", prefix + "active_file", prefix + "slab_reclaimable":
					cache, _ := number(value)
					now -= cache
				}
			}
			free = min(free, most-now)
		}
		if group = path.Dir(path.Join("/", group)); dir == mount {
			return free
		}
	}
}
