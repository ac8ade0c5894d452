package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"onlinerna/cuda"
	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
)

// deviceNames lists what --device takes.
var deviceNames = []string{"auto", "cpu", "cuda", "reference", "reference64"}

// The help of options that other commands have, too.
var (
	deviceHelp, winogradHelp, lowMemoryHelp = optionHelp("device"), optionHelp("winograd"), optionHelp("low-memory")
	precisionHelp, deterministicHelp        = optionHelp("precision"), optionHelp("deterministic")
	debugSyncHelp                           = processOptions.Find("debug-sync").Usage()
)

// defaultPrecision is that of GPUs.
const defaultPrecision = cuda.BFloat16

// bfloat16 is the precision that the CPU has besides float32.
var bfloat16 = cuda.BFloat16.String()

// deviceOptions are what the user chooses about a device.
type deviceOptions struct {
	threads       int
	direct        bool // no 3×3 convolution of the CPU runs by Winograd's algorithm
	debugSync     bool
	precision     string // empty: the device's own
	deterministic bool
	eager         bool
	log           io.Writer // for warnings; nil is stderr
}

// kindOf is the kind of the device of a name: cuda of cuda:1.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}

// resolved is the precision of a device, as it is recorded: empty for the only one, or the CPU's float32.
func (o deviceOptions) resolved(device string) string {
	kind := kindOf(device)
	switch {
	case kind == "cpu" && o.precision == bfloat16:
		return bfloat16
	case kind != "cuda":
		return ""
	}
	if o.precision == "" {
		return defaultPrecision.String()
	}
	return o.precision
}

// only says what is wrong with options for a device that is no GPU, and computes in one of the given precisions.
func (o deviceOptions) only(device string, precisions ...string) error {
	if o.precision != "" && !slices.Contains(precisions, o.precision) {
		if _, err := cuda.ParsePrecision(o.precision); err != nil && o.precision != "float64" {
			return err
		}
		return fmt.Errorf("device %s computes in %s, not in %s: use --precision %s, or --device cuda", device, strings.Join(precisions, " or "), o.precision, precisions[0])
	}
	if o.deterministic {
		return fmt.Errorf("device %s gives equal bits in each run anyway: leave --deterministic out, or use --device cuda", device)
	}
	return nil
}

// warn says something to the user.
func (o deviceOptions) warn(message string) {
	if o.log == nil {
		o.log = os.Stderr
	}
	fmt.Fprintln(o.log, message)
}

// chosenDevice is the device that is meant by a name: auto is a GPU on which nets can run and that is free, if there is one. Why a GPU that is there is
// not taken is said.
func chosenDevice(name string, log io.Writer) string {
	if name != "auto" {
		return name
	}
	r := cuda.Look()
	if n := r.Net(); n > 0 {
		for _, g := range r.InUse(n) {
			fmt.Fprintf(log, "GPU %d is in use, with %.1f of %.1f GB free: device cuda:%d is taken\n", g.Ordinal, float64(g.Free)/1e9, float64(g.Memory)/1e9, n)
		}
		return fmt.Sprintf("cuda:%d", n)
	} else if n == 0 {
		return "cuda"
	}
	if len(r.GPUs) > 0 {
		fmt.Fprintln(log, "there is a GPU, but nets cannot run on it: 'rna devices' says why; they run on the CPU")
	}
	return "cpu"
}

// openDevice opens a device by name.
func openDevice(name string, o deviceOptions) (device.Device, error) {
	kind, _, numbered := strings.Cut(name, ":")
	known := slices.Contains(deviceNames, kind) && (kind == "cuda" || !numbered)
	if o.debugSync && known && kind != "cuda" {
		return nil, fmt.Errorf("device %s has no queue to wait for: leave --debug-sync out, or use --device cuda", name)
	}
	if known && kind != "cuda" {
		own := []string{"float32"}
		switch kind {
		case "cpu":
			own = append(own, bfloat16)
		case "reference64":
			own[0] = "float64"
		}
		if err := o.only(kind, own...); err != nil {
			return nil, err
		}
	}
	switch {
	case name == "cpu":
		d, err := cpu.New(cpu.Options{Threads: o.threads, Direct: o.direct, BFloat16: o.precision == bfloat16})
		if err != nil {
			return nil, err // no device, not a nil one
		}
		if o.precision == bfloat16 && !simd.Default().BFloat16() {
			why := "this processor has no AVX512_BF16"
			if simd.HasBFloat16() {
				why = "AVX512_BF16 is left out by RNA_CPU, or slow on this processor"
			}
			o.warn("--precision bfloat16: " + why + ": float32 is faster, and takes more memory")
		}
		return d, nil
	case name == "reference":
		return device.NewReference(op.Float32), nil
	case name == "reference64":
		return device.NewReference(op.Float64), nil
	case known:
		return openGPU(name, o)
	}
	meant := suggest(name, deviceNames, "")
	if strings.HasPrefix(strings.ToLower(name), "gpu") {
		meant = ", did you mean cuda?"
	}
	return nil, fmt.Errorf("unknown device %q%s Devices: %s", name, orDot(meant), strings.Join(deviceNames, ", "))
}

// gpuOrdinal is which GPU a name of kind cuda means: N of cuda:N, that with a UUID, the first one without a number.
func gpuOrdinal(name string) (int, error) {
	_, number, numbered := strings.Cut(name, ":")
	if !numbered {
		return 0, nil
	}
	if upper := strings.ToUpper(number); strings.HasPrefix(upper, "GPU-") || strings.HasPrefix(upper, "MIG-") {
		all, err := cuda.Devices()
		if err != nil {
			return 0, err
		}
		return cuda.Find(all, number)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("device %s: %q is no number of a GPU: want one from 0, as in cuda:0; 'rna devices' lists them", name, number)
	}
	return n, nil
}

// openGPU opens a GPU.
func openGPU(name string, o deviceOptions) (device.Device, error) {
	ordinal, err := gpuOrdinal(name)
	if err != nil {
		return nil, err
	}
	precision, err := cuda.ParsePrecision(o.resolved(name))
	if err != nil {
		return nil, err
	}
	d, err := cuda.OpenNet(ordinal, cuda.NetOptions{Precision: precision, Deterministic: o.deterministic, DebugSync: o.debugSync, Eager: o.eager, Warn: o.warn})
	if err != nil {
		return nil, fmt.Errorf("device %s: %w; or use --device cpu", name, err)
	}
	return d, nil
}

// closed adds what a Close says to the error of what ran before. That a GPU is lost is said once.
func closed(err, end error) error {
	if errors.Is(err, cuda.ErrLost) && errors.Is(end, cuda.ErrLost) {
		return err
	}
	if end == nil { // err stays what it is
		return err
	}
	return errors.Join(err, end)
}

func orDot(s string) string {
	if s == "" {
		return "."
	}
	return s
}
