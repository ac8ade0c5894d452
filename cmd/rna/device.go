package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/cuda"
	"onlinerna/internal/files"
	"onlinerna/internal/simd"
	"onlinerna/internal/text"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/machine"
	"onlinerna/train"
	"onlinerna/train/option"
	"onlinerna/train/ranks/launch"
)

// deviceNames lists the values of --device.
var deviceNames = append([]string{"auto"}, device.Kinds()...)

// The help of options shared with other commands.
var (
	deviceHelp, winogradHelp         = train.Options().Find("device").Help, train.Options().Find("winograd").Help
	precisionHelp, deterministicHelp = optionHelp("precision"), optionHelp("deterministic")
	precisionsHelp                   = "precision of training: " + strings.Join(precisionValues, ", ") // on GPUs alone
	lowMemoryHelp, float32Help       = optionHelp("low-memory"), optionHelp("float32")
	debugSyncHelp                    = processOptions.Find("debug-sync").Usage()
)

// deviceOptions are the user's choices about a device.
type deviceOptions struct {
	threads       int
	direct        bool // no Winograd algorithm for 3×3 convolutions on the CPU
	debugSync     bool
	float32       string // how products of float32 run on the CPU; empty: the default
	precision     string // empty: the device's own
	deterministic bool
	eager         bool
	log           io.Writer // for warnings; nil is stderr
}

// resolved returns the precision of a device as recorded: see [device.Driver.Recorded].
func (o deviceOptions) resolved(name string) string {
	kind, unit := device.Parse(name)
	if d, ok := device.Find(kind); ok {
		return d.Recorded(unit, o.precision)
	}
	return o.precision
}

// fit finds options that a kind of device does not have.
func (o deviceOptions) fit(kind string, d device.Driver) error {
	best := device.Preferred()[0]
	if o.debugSync && !d.Queue {
		return fmt.Errorf("device %s has no queue to wait for: leave --debug-sync out, or use --device %s", kind, best)
	}
	if o.precision != "" && !slices.Contains(d.Precisions, o.precision) {
		all := precisions()
		if kind == best {
			all = d.Precisions
		}
		if !slices.Contains(all, o.precision) {
			return fmt.Errorf("unknown precision %q: use one of %s", o.precision, strings.Join(all, ", "))
		}
		return fmt.Errorf("device %s computes in %s, not in %s: use --precision %s, or --device %s",
			kind, strings.Join(d.Precisions, " or "), o.precision, d.Precisions[0], best)
	}
	if o.float32 != "" && o.float32 != "direct" && len(d.Float32) == 0 {
		return fmt.Errorf("device %s has one way to multiply float32: leave --float32 out, or use --device cpu", kind)
	}
	if o.deterministic && !d.Queue {
		return fmt.Errorf("device %s gives equal bits in each run anyway: leave --deterministic out, or use --device %s",
			kind, best)
	}
	return nil
}

// precisions lists those of all kinds of devices.
func precisions() (all []string) {
	for _, kind := range append(device.Preferred(), device.Kinds()...) {
		d, _ := device.Find(kind)
		for _, p := range d.Precisions {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// warn prints a warning.
func (o deviceOptions) warn(message string) {
	if o.log == nil {
		o.log = os.Stderr
	}
	fmt.Fprintln(o.log, text.PrintableLines(message))
}

// chosenDevice resolves a device name: auto becomes the best available device. It logs why a better one is left out.
func chosenDevice(name string, log io.Writer) string {
	if name == "auto" {
		return device.Auto(log)
	}
	return name
}

// openDevice opens a device by name.
func openDevice(name string, o deviceOptions) (device.Device, error) {
	kind, unit, numbered := strings.Cut(name, ":")
	driver, ok := device.Find(kind)
	if !ok || numbered && (!driver.Units || unit == "") {
		meant := cli.Suggest(name, deviceNames, "")
		if strings.HasPrefix(strings.ToLower(name), "gpu") {
			meant = ", did you mean " + device.Preferred()[0] + "?"
		}
		return nil, fmt.Errorf("unknown device %q%s Devices: %s", name, orDot(meant), strings.Join(deviceNames, ", "))
	}
	if err := o.fit(kind, driver); err != nil {
		return nil, err
	}
	d, err := driver.Open(unit, device.Options{Threads: o.threads, Direct: o.direct, Float32: o.float32,
		Precision: o.precision, Deterministic: o.deterministic, DebugSync: o.debugSync, Eager: o.eager, Warn: o.warn})
	if all := device.Preferred(); err != nil && driver.Queue {
		return nil, fmt.Errorf("device %s: %w; or use --device %s", name, err, all[len(all)-1])
	}
	return d, err
}

// addRanks adds the rank options to a group.
func addRanks(g cli.Group, o *launch.Options) {
	for _, x := range cli.Flags(launch.Table, o, new([]option.Setting)) {
		g.AddFlag(x.Flag)
	}
}

func orDot(s string) string {
	if s == "" {
		return "."
	}
	return s
}

// optionHelp returns the help of a training option, for other commands that have it.
func optionHelp(name string) string { return train.Options().Find(name).Usage() }

// modelNames lists the models.
func modelNames() (names []string) {
	for _, a := range nn.Architectures() {
		names = append(names, a.Name)
	}
	return names
}

// The values of options shared by many commands.
var (
	deviceValues    = deviceUnits(deviceNames, true)
	precisionValues = device.Of(device.Preferred()[0]).Precisions
	float32Values   = device.Of("cpu").Float32
)

// deviceUnits adds the first unit of kinds with units to device names, and with all the name for all units.
func deviceUnits(names []string, all bool) []string {
	list := slices.Clone(names)
	for _, kind := range names {
		if d := device.Of(kind); d.Units {
			list = append(list, kind+":0")
		}
		if d := device.Of(kind); all && d.Several != nil {
			list = append(list, kind+":all")
		}
	}
	return list
}

func newDevices() *cobra.Command {
	var properties string
	var out cli.JSON
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Show the processor, the GPUs and their libraries",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := cpu.New(cpu.Options{})
			if err != nil {
				return err
			}
			defer d.Close()
			r := cuda.Look()
			r.Try()
			processor := map[string]any{"threads": d.Threads(), "level": d.Level()}
			if why := simd.Refused(); why != nil {
				processor["refused"] = why.Error()
			}
			err = out.Write(cmd.OutOrStdout(), map[string]any{"cpu": processor, "cuda": r}, func(w io.Writer) error {
				fmt.Fprintf(w, "%-15s%d threads, kernels for %s\n", "CPU", d.Threads(), simd.Summary())
				return r.Print(w)
			})
			if err != nil || properties == "" {
				return err
			}
			text, err := cuda.Properties(0)
			if err != nil {
				return err
			}
			return files.WriteTo(properties, func(w io.Writer) error { _, err := io.WriteString(w, text+"\n"); return err })
		},
	}
	g := cli.NewGroup("Options")
	g.StringVar(&properties, "properties", "", "write cuDNN's properties of the first GPU to this `file` as JSON, to "+
		"plan for it elsewhere")
	out.Add(g)
	cli.AddGroups(cmd, g)
	return cmd
}

func newPlans() *cobra.Command {
	o := cuda.PlansOptions{Threads: runtime.NumCPU()}
	var precision, model string
	var batch int
	var out cli.JSON
	cmd := &cobra.Command{
		Use:   "plans [options]",
		Short: "Make cuDNN's plans for a GPU ahead of time",
		Long: `Make cuDNN's plans of a net's convolutions ahead of time, on any machine with NVIDIA's cuDNN 9.8 or newer. The
first training on a GPU then compiles none of them. They are for one model, batch size, precision and card, and for
the same version of cuDNN; other plans are made by training itself. Training finds them in the cache's folder of the
user, or in the folder that RNA_CUDA_AHEAD in the environment names.`,
		Example: `  rna plans --card h100 --model resnet50 --batch 256 -o plans
  RNA_CUDA_AHEAD=plans rna train --device cuda --model resnet50`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Precision, err = cuda.ParsePrecision(precision); err != nil {
				return err
			}
			if batch < 1 || o.Threads < 1 {
				return fmt.Errorf("batch %d, threads %d: want 1 or more", batch, o.Threads)
			}
			o.Describe = func(d device.Device) error {
				err := machine.Describe(d, model, batch, nn.Train)
				if err == nil {
					err = machine.Describe(d, model, batch, nn.Eval)
				}
				return err
			}
			said := time.Now()
			o.After = func(done string) {
				if time.Since(said) > 4*time.Second {
					fmt.Fprintln(cmd.ErrOrStderr(), done)
					said = time.Now()
				}
			}
			r, err := cuda.MakePlans(o)
			if err != nil {
				return err
			}
			return out.Write(cmd.OutOrStdout(), r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%d plans of %d graphs for %s and cuDNN %s, %.1f MB, in %s\n", r.Plans, r.Graphs,
					r.Card, r.CuDNN, float64(r.Bytes)/1e6, r.Folder)
				return err
			})
		},
	}
	w := cli.NewGroup("Work")
	w.StringVar(&o.Card, "card", "h100", "card: a100, h100, h200, b200, rtx4090, rtx5090, t4")
	w.Values("card", "a100", "h100", "h200", "b200", "rtx4090", "rtx5090", "t4")
	w.StringVar(&model, "model", "resnet50", "model, see rna models")
	w.Values("model", modelNames()...)
	w.IntVar(&batch, "batch", 256, "`images` a step")
	w.StringVar(&precision, "precision", "bfloat16", precisionsHelp)
	w.Values("precision", precisionValues...)
	r := cli.NewGroup("Run")
	r.IntVar(&o.Threads, "threads", o.Threads, "threads that make plans")
	r.StringVarP(&o.Folder, "out", "o", "", "`folder` for the plans (default: the user's cache)")
	out.Add(r)
	cli.AddGroups(cmd, w, r)
	return cmd
}
