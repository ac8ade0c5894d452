package cuda

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"onlinerna/cuda/number"
	"onlinerna/nn/device"
)

func init() {
	device.Register("cuda", device.Driver{
		Precisions: strings.Split(number.Precisions(), ", "),
		Default:    fastest,
		Units:      true,
		Queue:      true,
		Preference: 2,
		Several:    several,
		Auto:       free,
		Open:       openUnit,
	})
}

// free chooses a GPU that is free and can run nets. It says why other GPUs are left out.
func free(log io.Writer) (unit string, found bool) {
	r := Look()
	n := r.Net()
	switch {
	case n > 0:
		for _, g := range r.InUse(n) {
			fmt.Fprintf(log, "GPU %d is in use, with %.1f of %.1f GB free: device cuda:%d is taken\n",
				g.Ordinal, float64(g.Free)/1e9, float64(g.Memory)/1e9, n)
		}
		return strconv.Itoa(n), true
	case n == 0:
		return "", true
	case len(r.GPUs) > 0:
		fmt.Fprintln(log, "there is a GPU, but nets cannot run on it: 'rna devices' says why; they run on the CPU")
	}
	return "", false
}

// several lists the GPUs that a device name for several ranks selects.
func several(units string) (list []string, err error) {
	if units != "all" {
		for unit := range strings.SplitSeq(units, ",") {
			n, err := Ordinal(unit)
			if err != nil {
				return nil, err
			}
			list = append(list, strconv.Itoa(n))
		}
		return list, nil
	}
	all, err := Devices()
	for _, d := range all {
		list = append(list, strconv.Itoa(d.Ordinal))
	}
	return list, err
}

// fastest is the 16-bit precision of a GPU: float16 before sm_80, which has no bfloat16.
func fastest(unit string) string {
	n := 0
	if unit != "" {
		n, _ = Ordinal(unit) // opening the GPU reports a wrong unit
	}
	if all, err := Devices(); err == nil && n < len(all) && all[n].Major < 8 {
		return Float16.String()
	}
	return BFloat16.String()
}

// Ordinal returns the number of the GPU that a device's unit names by number or UUID.
func Ordinal(unit string) (int, error) {
	if upper := strings.ToUpper(unit); strings.HasPrefix(upper, "GPU-") || strings.HasPrefix(upper, "MIG-") {
		all, err := Devices()
		if err != nil {
			return 0, err
		}
		return Find(all, unit)
	}
	n, err := strconv.Atoi(unit)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("device cuda:%s: %q is no number of a GPU: want one from 0, as in cuda:0; "+
			"'rna devices' lists them", unit, unit)
	}
	return n, nil
}

func openUnit(unit string, o device.Options) (device.Device, error) {
	ordinal := 0
	if unit != "" {
		var err error
		if ordinal, err = Ordinal(unit); err != nil {
			return nil, err
		}
	}
	name := o.Precision
	if name == "" {
		name = fastest(unit)
	}
	precision, err := ParsePrecision(name)
	if err != nil {
		return nil, err
	}
	return OpenNet(ordinal, NetOptions{Precision: precision, Deterministic: o.Deterministic, DebugSync: o.DebugSync,
		Eager: o.Eager, Warn: o.Warn})
}
