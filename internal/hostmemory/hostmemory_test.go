package hostmemory

import (
	"testing"
	"testing/fstest"
)

func TestFree(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := file("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"elsewhere", fstest.MapFS{}, 0},
		{"no group", fstest.MapFS{"proc/meminfo": meminfo}, 8000 << 10},
		{"version 2, limited above", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/b/memory.current": file("5\n"),
			"sys/fs/cgroup/a/memory.max": file("3000000\n"), "sys/fs/cgroup/a/memory.current": file("2000000\n"),
			"sys/fs/cgroup/a/memory.stat": file("anon 7\ninactive_file 500000\n"),
		}, 1_500_000},
		{"version 1, path of the host", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("4:cpu:/x\n3:memory:/docker/x\n0::/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("4000000\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes": file("1000000\n"),
		}, 3_000_000},
		{"full", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("100\n"), "sys/fs/cgroup/memory.current": file("200\n"),
		}, 1},
	} {
		if got := freeIn(c.root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}
