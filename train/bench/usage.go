package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"onlinerna/internal/machine"
)

// Usage counts the resources that the process used, on Unix.
type Usage struct {
	User   float64 `json:"user_s"`   // processor seconds, of all threads
	System float64 `json:"system_s"` // of these, seconds spent in the kernel for the process
	Faults float64 `json:"faults"`   // page faults
}

func (u Usage) since(v Usage) Usage {
	return Usage{u.User - v.User, u.System - v.System, u.Faults - v.Faults}
}

func (u Usage) per(steps int) Usage {
	n := float64(steps)
	return Usage{u.User / n, u.System / n, u.Faults / n}
}

// processor names the machine as the system does.
func processor() string {
	name := runtime.GOOS + "/" + runtime.GOARCH
	if model := machine.CPU(); model != "" {
		name = model + ", " + name
	}
	return name
}

// peakMemory returns the largest resident set of the process so far in bytes; 0 if unknown.
func peakMemory() int64 {
	kB, _ := strconv.ParseInt(strings.TrimSuffix(machine.Field("/proc/self/status", "VmHWM"), " kB"), 10, 64)
	return kB << 10
}

// loadAverage returns the number of runnable threads, averaged over a minute; 0 if unknown.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}
