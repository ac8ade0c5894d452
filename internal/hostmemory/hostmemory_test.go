package hostmemory

import (
	"testing"
	"testing/fstest"
)

func TestFree(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := file("MemTotal: 900000 kB\nMemAvailable:    800000 kB\n")
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"elsewhere", fstest.MapFS{}, 0},
		{"no group", fstest.MapFS{"proc/meminfo": meminfo}, 800000 << 10},
		{"version 2, limited above", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/b/memory.current": file("5\n"),
			"sys/fs/cgroup/a/memory.max": file("300000000\n"), "sys/fs/cgroup/a/memory.current": file("200000000\n"),
			"sys/fs/cgroup/a/memory.stat": file("anon 7\ninactive_file 40000000\nactive_file 9000000\nslab_reclaimable 1000000\n"),
		}, 150_000_000},
		{"version 1, path of the host", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("4:cpu:/x\n3:memory:/docker/x\n0::/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("400000000\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes": file("400000000\n"),
			"sys/fs/cgroup/memory/memory.stat": file("inactive_file 1\ntotal_inactive_file 100000000\n" +
				"active_file 1\ntotal_active_file 200000000\n"),
		}, 300_000_000},
		{"full", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("400000000\n"), "sys/fs/cgroup/memory.current": file("500000000\n"),
		}, least},
	} {
		if got := freeIn(c.root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}
