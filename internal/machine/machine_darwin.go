package machine

import "golang.org/x/sys/unix"

// CPU names the processor; empty if unknown.
func CPU() string {
	name, _ := unix.Sysctl("machdep.cpu.brand_string")
	return name
}

// memory is the size of the main memory in bytes; 0 if unknown.
func memory() int64 {
	n, _ := unix.SysctlUint64("hw.memsize")
	return int64(n)
}
