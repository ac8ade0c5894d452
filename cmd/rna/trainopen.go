package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cuda"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/ranks"
)

// onRanks has run run on the ranks that the options and the launcher mean.
func (f *trainFlags) onRanks(cmd *cobra.Command, run func(g *ranks.Group) error) error {
	return f.ranks.run(cmd.Context(), f.wanted(cmd.Flags()), run)
}

// open checks the options and opens the device.
func (f *trainFlags) open(cmd *cobra.Command, g *ranks.Group) (device.Device, error) {
	set := cmd.Flags()
	if f.resume != "" {
		var wrong []string
		set.Visit(func(g *pflag.Flag) {
			if !resumable[g.Name] {
				wrong = append(wrong, "--"+g.Name)
			}
		})
		if len(wrong) > 0 {
			return nil, &usageError{cmd.CommandPath(), fmt.Errorf("--resume goes on with the options of the run; it does not take %s", strings.Join(wrong, ", "))}
		}
	}
	if f.configFile != "" {
		if err := f.readFile(set); err != nil {
			return nil, &usageError{cmd.CommandPath(), err}
		}
	}
	if f.recipe != "" {
		if err := f.follow(set, cmd.OutOrStdout(), g.First()); err != nil {
			return nil, &usageError{cmd.CommandPath(), err}
		}
	}
	if err := f.check(set); err != nil {
		return nil, &usageError{cmd.CommandPath(), err}
	}
	if set.Changed("comm-precision") {
		switch {
		case !slices.Contains(commPrecisions, f.CommPrecision):
			return nil, &usageError{cmd.CommandPath(), fmt.Errorf("--comm-precision %s: %s", f.CommPrecision, strings.Join(commPrecisions, " or "))}
		case g.Single():
			return nil, &usageError{cmd.CommandPath(), errors.New("--comm-precision is for several GPUs, as --device cuda:all: there is one process")}
		}
	}
	if !g.Single() {
		if f.Threads == 0 {
			f.Threads = g.Threads()
		}
		if f.Workers == 0 {
			f.Workers = g.Workers()
		}
	}
	var recorded string // device
	if f.file != nil {
		recorded = f.file.Device
	}
	options := deviceOptions{threads: f.Threads, direct: !f.Winograd, debugSync: f.debugSync, precision: f.precision, deterministic: f.deterministic}
	if f.resume != "" {
		c, err := train.ReadConfig(f.resume)
		if err != nil {
			return nil, fmt.Errorf("nothing to resume: %w", err)
		}
		recorded = c.Device
		if !set.Changed("device") && c.Device != "" {
			f.device = c.Device
		}
		options.direct, options.deterministic, f.CommPrecision = !c.Winograd, c.Deterministic, c.CommPrecision
		if !set.Changed("precision") {
			options.precision = c.Precision
			if c.Precision == "" && kindOf(c.Device) == "cuda" {
				options.precision = cuda.Float32.String() // the only one, when none was recorded
			}
		}
	}
	own, err := ownDevice(f.device, g)
	if err != nil {
		return nil, err
	}
	if f.device == "auto" && !g.Single() { // as a resumed run is to have it
		f.device = kindOf(own)
	}
	own = chosenDevice(own, cmd.ErrOrStderr())
	if own == "cpu" && options.precision == bfloat16 && !set.Changed("precision") && kindOf(recorded) == "cuda" {
		return nil, fmt.Errorf("the run's precision %s was that of device %s: on device cpu give --precision float32, or %[1]s, which float32 outruns where the processor has no AVX512_BF16", bfloat16, recorded)
	}
	if !several(f.device) && g.Single() {
		f.device = own
	}
	f.precision, options.log = options.resolved(own), cmd.ErrOrStderr()
	if own == "cpu" && !g.First() { // what is said of a processor is said once
		options.log = io.Discard
	}
	return openDevice(own, options)
}

// wanted is the name of the device that the user wants, before it is known which there are.
func (f *trainFlags) wanted(set *pflag.FlagSet) string {
	if f.resume != "" && !set.Changed("device") {
		if c, err := train.ReadConfig(f.resume); err == nil && c.Device != "" {
			return c.Device
		}
	}
	return f.device
}
