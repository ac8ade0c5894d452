package parallel

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fastCores counts the fast cores that this process may use, 0 if unknown.
func fastCores() int {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return 0
	}
	return fast(capacities("/sys/devices/system/cpu", func(cpu int) bool { return allowed.IsSet(cpu) }))
}

// capacities returns the capacities of the allowed cores, none if one is unknown.
func capacities(folder string, allowed func(cpu int) bool) (list []int) {
	for cpu := range 8 * 1024 {
		if !allowed(cpu) {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("%s/cpu%d/cpu_capacity", folder, cpu))
		if err != nil {
			return nil
		}
		c, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return nil
		}
		if list = append(list, c); len(list) == runtime.NumCPU() {
			break
		}
	}
	return list
}
