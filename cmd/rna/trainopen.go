package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/internal/cli"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train"
	"onlinerna/train/option"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
)

// onRanks has run run on the ranks that the options and the launcher mean.
func (f *trainFlags) onRanks(cmd *cobra.Command, run func(g *ranks.Group) error) error {
	return f.ranks.Run(cmd.Context(), f.wanted(), run)
}

// open checks the options and opens the device.
func (f *trainFlags) open(cmd *cobra.Command, g *ranks.Group) (device.Device, error) {
	said := cmd.Flags().Changed
	if f.orStart {
		if err := f.resumeOrStart(cmd, g); err != nil {
			return nil, err
		}
	} else if f.resume != "" {
		if wrong := f.fixed(); len(wrong) > 0 {
			return nil, cli.Usage(cmd, fmt.Errorf("--resume goes on with the options of the run; it does not take %s", cli.Said(wrong)))
		}
	}
	if f.dataChanged != "" && f.resume == "" && !f.orStart {
		return nil, cli.Usage(cmd, errors.New("--data-changed is of a run that goes on: give --resume, too"))
	}
	if err := f.build(); err != nil {
		return nil, cli.Usage(cmd, err)
	}
	recorded := f.Device // in a file
	f.Device = cmp.Or(f.Device, "auto")
	if f.recipe != "" && g.First() {
		f.tellRecipe(cmd.OutOrStdout())
	}
	if said("comm-precision") && g.Single() {
		return nil, cli.Usage(cmd, errors.New("--comm-precision is for several GPUs, as --device cuda:all: there is one process"))
	}
	if !g.Single() {
		if f.Threads == 0 {
			f.Threads = g.Threads()
		}
		if f.Workers == 0 {
			f.Workers = g.Workers()
		}
	}
	options := deviceOptions{threads: f.Threads, direct: isFalse(f.Winograd), debugSync: f.debugSync, precision: f.Precision, deterministic: f.Deterministic}
	if f.resume != "" {
		c, err := train.ReadSpec(f.resume)
		if err != nil {
			return nil, fmt.Errorf("nothing to resume: %w", err)
		}
		recorded = c.Device
		if !said("device") && c.Device != "" {
			f.Device = c.Device
		}
		options.direct, options.deterministic, f.CommPrecision = isFalse(c.Winograd), c.Deterministic, c.CommPrecision
		if !said("precision") {
			options.precision = c.Precision
			if c.Precision == "" && device.Usual(c.Device) != "" {
				options.precision = op.Float32.String() // the only one, when none was recorded
			}
		}
	}
	own, err := launch.OwnDevice(f.Device, g)
	if err != nil {
		return nil, err
	}
	if f.Device == "auto" && !g.Single() { // as a resumed run is to have it
		f.Device, _ = device.Parse(own)
	}
	own = chosenDevice(own, cmd.ErrOrStderr())
	d := device.Of(own)
	if p := options.precision; p != "" && !said("precision") && p == device.Usual(recorded) && device.Usual(own) != p {
		return nil, fmt.Errorf("the run's precision %s was that of device %s: on device %s give one of --precision %s, "+
			"of which the first may be faster", p, recorded, own, strings.Join(d.Precisions, ", "))
	}
	if !launch.Several(f.Device) && g.Single() {
		f.Device = own
	}
	f.Precision, options.log = options.resolved(own), cmd.ErrOrStderr()
	if d.Several == nil && !g.First() { // rank 0 tells of a device that ranks share
		options.log = io.Discard
	}
	return openDevice(own, options)
}

// wanted is the name of the device that the user wants, before it is known which there are.
func (f *trainFlags) wanted() string {
	if dir := cmp.Or(f.resume, f.started()); dir != "" && f.Device == "" {
		if c, err := train.ReadSpec(dir); err == nil && c.Device != "" {
			return c.Device
		}
	}
	return cmp.Or(f.Device, "auto")
}

// started is the folder of --resume-or-start, "" without it.
func (f *trainFlags) started() string {
	for _, x := range f.said {
		if f.orStart && x.Name == "out" {
			return x.Text
		}
	}
	return ""
}

// resumeOrStart makes the command line that of a run that is resumed, if its folder has a checkpoint.
func (f *trainFlags) resumeOrStart(cmd *cobra.Command, g *ranks.Group) error {
	dir := f.started()
	if f.resume != "" || dir == "" || dir == train.AutoOut {
		return cli.Usage(cmd, errors.New("--resume-or-start is for the run in a folder of its own: name that by -o, without --resume"))
	}
	there, err := false, error(nil)
	if g.First() {
		there, err = train.Await(cmd.Context(), dir, func(holder error) { fmt.Fprintln(cmd.ErrOrStderr(), holder) })
	}
	if err = g.Together(err); err == nil {
		err = g.Share(&there)
	}
	if err != nil || !there {
		return err
	}
	c, err := train.ReadSpec(dir)
	if err != nil {
		return err
	}
	var kept []option.Setting
	var wrong []string
	for _, x := range f.said {
		switch o := train.Options().Find(x.Name); {
		case o.Resumable:
			kept = append(kept, x)
		case x.Name == "out" || x.Name == "init" || x.Text == "auto": // which are resolved at the start
		default:
			trial := c
			if err := train.Options().Apply(&trial, x); err != nil {
				return cli.Usage(cmd, cli.Dashed(err))
			}
			if o.Text(&trial) != o.Text(&c) {
				wrong = append(wrong, fmt.Sprintf("--%s %s", x.Name, cmp.Or(o.Text(&c), "left out")))
			}
		}
	}
	if len(wrong) > 0 {
		return cli.Usage(cmd, fmt.Errorf("the run in %s was started with %s: say the same, or choose another folder", dir, strings.Join(wrong, ", ")))
	}
	f.resume, f.said, f.configFile, f.recipe = dir, kept, "", ""
	return nil
}

// fixed lists the options on the command line that a resumed run does not take.
func (f *trainFlags) fixed() (list []option.Setting) {
	for _, x := range f.said {
		if !train.Options().Find(x.Name).Resumable {
			list = append(list, x)
		}
	}
	for _, x := range f.process {
		if o := processOptions.Find(x.Name); o == nil || !o.Resumable {
			list = append(list, x)
		}
	}
	return list
}

func isFalse(b *bool) bool { return b != nil && !*b }
