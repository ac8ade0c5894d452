//go:build unix

package bench

import "syscall"

func usageNow() Usage {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return Usage{}
	}
	return Usage{float64(u.Utime.Nano()) / 1e9, float64(u.Stime.Nano()) / 1e9, float64(u.Minflt)}
}
