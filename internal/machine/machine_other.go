//go:build !darwin

package machine

import (
	"os"
	"strconv"
	"strings"
)

// CPU names the processor; empty if unknown.
func CPU() string {
	if name := Field("/proc/cpuinfo", "model name"); name != "" {
		return name
	}
	return os.Getenv("PROCESSOR_IDENTIFIER") // of Windows
}

// memory is the size of the main memory in bytes; 0 if unknown.
func memory() int64 {
	kB, _ := strconv.ParseInt(strings.TrimSuffix(Field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	return kB << 10
}
