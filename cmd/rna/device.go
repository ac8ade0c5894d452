package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"onlinerna/cuda"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
)

// deviceNames lists what --device takes.
var deviceNames = []string{"auto", "cpu", "cuda", "reference", "reference64"}

const deviceHelp = "auto (the CPU), cpu, cuda: an NVIDIA GPU, in float32 (cuda:1: the second one), or reference: the slow definition that the others are checked against (reference64: in float64)"

const winogradHelp = "3×3 convolutions by Winograd's algorithm where it is faster: errors of 1e-6 to 4e-6 of the largest element, in place of 2e-7 to 9e-7 (device cpu)"

const debugSyncHelp = "wait for the GPU after each op, so that a failure names the op that caused it: slow (device cuda)"

// deviceOptions are what the user chooses about a device.
type deviceOptions struct {
	threads             int
	winograd, debugSync bool
}

// openDevice opens a device by name.
func openDevice(name string, o deviceOptions) (device.Device, error) {
	kind, number, numbered := strings.Cut(name, ":")
	known := slices.Contains(deviceNames, kind) && (kind == "cuda" || !numbered)
	if o.debugSync && known && kind != "cuda" {
		return nil, fmt.Errorf("device %s has no queue to wait for: leave --debug-sync out, or use --device cuda", name)
	}
	switch name {
	case "auto", "cpu":
		return cpu.New(cpu.Options{Threads: o.threads, Winograd: o.winograd})
	}
	if o.winograd && known {
		return nil, fmt.Errorf("device %s has no Winograd convolutions: leave --winograd out, or use --device cpu", name)
	}
	switch {
	case name == "reference":
		return device.NewReference(op.Float32), nil
	case name == "reference64":
		return device.NewReference(op.Float64), nil
	case known:
		return openGPU(name, number, numbered, o)
	}
	return nil, fmt.Errorf("unknown device %q%s Devices: %s", name, orDot(suggest(name, deviceNames, "")), strings.Join(deviceNames, ", "))
}

// openGPU opens a GPU, the first one without a number. Results have equal bits in each run.
func openGPU(name, number string, numbered bool, o deviceOptions) (device.Device, error) {
	ordinal := 0
	if numbered {
		var err error
		if ordinal, err = strconv.Atoi(number); err != nil || ordinal < 0 {
			return nil, fmt.Errorf("device %s: %q is no number of a GPU: want one from 0, as in cuda:0; 'rna devices' lists them", name, number)
		}
	}
	d, err := cuda.OpenNet(ordinal, cuda.NetOptions{Deterministic: true, DebugSync: o.debugSync})
	if err != nil {
		return nil, fmt.Errorf("device %s: %w; or use --device cpu", name, err)
	}
	return d, nil
}

func orDot(s string) string {
	if s == "" {
		return "."
	}
	return s
}
