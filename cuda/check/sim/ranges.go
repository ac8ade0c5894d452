//go:build gpu && cgo

package sim

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nvtx"
)

// LogRanges returns the environment in which a program's ranges, by package nvtx, are written to a file.
func LogRanges(path string) []string {
	library := filepath.Join(filepath.Dir(lazy.Driver.File()), "libnvtx-log.so")
	return []string{nvtx.Variable + "=" + library, "RNA_SIM_NVTX=" + path}
}

// Ranges reads such a file: the ranges in the order in which they were opened, as names of those around them and their
// own, separated by slashes, and the names of threads and streams. A range that is not closed, or not in its thread, is
// an error.
func Ranges(path string) (ranges, names []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	open := map[string][]string{} // by thread
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		thread, rest, _ := strings.Cut(lines.Text(), " ")
		depth, rest, _ := strings.Cut(rest, " ")
		call, name, _ := strings.Cut(rest, " ")
		at := open[thread]
		switch call {
		case "push":
			at = append(at, name)
			ranges = append(ranges, strings.Join(at, "/"))
		case "pop":
			if len(at) == 0 {
				return nil, nil, fmt.Errorf("thread %s closes a range and has none", thread)
			}
			at = at[:len(at)-1]
		default:
			names = append(names, call+" "+name)
		}
		if n, err := strconv.Atoi(depth); err != nil || call == "pop" && n != len(at) {
			return nil, nil, fmt.Errorf("%q with %d ranges open", lines.Text(), len(at))
		}
		open[thread] = at
	}
	for thread, at := range open {
		if len(at) > 0 {
			return nil, nil, fmt.Errorf("thread %s leaves %q open", thread, at)
		}
	}
	return ranges, names, lines.Err()
}
