package main

import (
	"fmt"
	"strings"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
)

// deviceNames lists what --device takes.
var deviceNames = []string{"auto", "cpu", "reference", "reference64"}

const deviceHelp = "auto, cpu, or reference: the slow definition that the others are checked against (reference64: in float64)"

// openDevice opens a device by name.
func openDevice(name string, threads int) (device.Device, error) {
	switch name {
	case "auto", "cpu":
		return cpu.New(cpu.Options{Threads: threads})
	case "reference":
		return device.NewReference(op.Float32), nil
	case "reference64":
		return device.NewReference(op.Float64), nil
	case "cuda":
		return nil, fmt.Errorf("device cuda: this build has no GPU support; use --device cpu")
	}
	return nil, fmt.Errorf("unknown device %q%s Devices: %s", name, orDot(suggest(name, deviceNames, "")), strings.Join(deviceNames, ", "))
}

func orDot(s string) string {
	if s == "" {
		return "."
	}
	return s
}
