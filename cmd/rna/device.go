package main

import (
	"fmt"
	"slices"
	"strings"

	"onlinerna/cuda"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
)

// deviceNames lists what --device takes.
var deviceNames = []string{"auto", "cpu", "reference", "reference64"}

const deviceHelp = "auto (the CPU), cpu, or reference: the slow definition that the others are checked against (reference64: in float64)"

const winogradHelp = "3×3 convolutions by Winograd's algorithm where it is faster: errors of about 3e-6 of the largest element in place of 5e-7 (device cpu)"

// openDevice opens a device by name.
func openDevice(name string, threads int, winograd bool) (device.Device, error) {
	switch name {
	case "auto", "cpu":
		return cpu.New(cpu.Options{Threads: threads, Winograd: winograd})
	}
	if winograd && slices.Contains(deviceNames, name) {
		return nil, fmt.Errorf("device %s has no Winograd convolutions: leave --winograd out, or use --device cpu", name)
	}
	switch name {
	case "reference":
		return device.NewReference(op.Float32), nil
	case "reference64":
		return device.NewReference(op.Float64), nil
	case "cuda":
		return nil, noTraining()
	}
	return nil, fmt.Errorf("unknown device %q%s Devices: %s", name, orDot(suggest(name, deviceNames, "")), strings.Join(deviceNames, ", "))
}

// noTraining says why --device cuda is not to be had: what is missing, or that nets do not train on it.
func noTraining() error {
	gpus, err := cuda.Devices()
	if err != nil {
		return fmt.Errorf("device cuda: %w; or use --device cpu", err)
	}
	return fmt.Errorf("device cuda: nets do not train or run on GPUs (found: %v); use --device cpu", gpus)
}

func orDot(s string) string {
	if s == "" {
		return "."
	}
	return s
}
