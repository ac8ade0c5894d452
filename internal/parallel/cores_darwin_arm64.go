package parallel

import "golang.org/x/sys/unix"

// fastCores is the number of performance cores, 0 if unknown.
func fastCores() int {
	n, err := unix.SysctlUint32("hw.perflevel0.physicalcpu")
	if err != nil {
		return 0
	}
	return int(n)
}
