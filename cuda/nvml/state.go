// Package nvml reads the state of GPUs from NVML: free memory, clocks, power and temperature. It opens no GPU.
package nvml

import (
	"fmt"
	"strings"
)

// State is a GPU's state. Zero means that the GPU does not report the figure.
type State struct {
	Free, Total int64    // bytes of memory
	Clock       int      // of the multiprocessors, MHz
	MemoryClock int      // MHz
	Power       float64  // W
	PowerLimit  float64  // W
	Temperature int      // °C
	Slowed      []string // why the clocks are below the maximum under load; idle clocks are not listed
}

// reasons are NVML's bits for lowered clocks. Idle GPUs and clocks that the user has set are left out.
var reasons = []struct {
	bits uint64
	text string
}{
	{0x04, "power limit"},
	{0x08, "hardware slowdown"},
	{0x20, "temperature (driver)"},
	{0x40, "temperature (hardware)"},
	{0x80, "power brake"},
}

func slowed(bits uint64) (why []string) {
	for _, r := range reasons {
		if bits&r.bits != 0 {
			why = append(why, r.text)
		}
	}
	return why
}

// String lists clock, power, temperature and the reasons for lowered clocks, as far as they are known.
func (s State) String() string {
	var parts []string
	if s.Clock > 0 {
		parts = append(parts, fmt.Sprintf("%d MHz", s.Clock))
	}
	switch {
	case s.Power > 0 && s.PowerLimit > 0:
		parts = append(parts, fmt.Sprintf("%.0f of %.0f W", s.Power, s.PowerLimit))
	case s.Power > 0:
		parts = append(parts, fmt.Sprintf("%.0f W", s.Power))
	}
	if s.Temperature > 0 {
		parts = append(parts, fmt.Sprintf("%d °C", s.Temperature))
	}
	if len(s.Slowed) > 0 {
		parts = append(parts, "slowed by: "+strings.Join(s.Slowed, ", "))
	}
	return strings.Join(parts, ", ")
}
