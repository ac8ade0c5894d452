package train

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/hook"
	"onlinerna/train/profile"
	"onlinerna/train/ranks"
)

// Deps are the inputs of a run besides its Spec. Only Device is required.
type Deps struct {
	Device device.Device // remains the caller's

	// Train and Val are images that replace Spec.Data and Spec.ValData. The caller closes them, and passes them again to a
	// resumed run. Val may be nil. Val's classes are Train's.
	Train, Val data.Dataset

	// DataChanged lets a resumed run continue with images other than its checkpoint's, of the same number.
	DataChanged bool

	// Ranks are the processes that train together, each with its own device and run; nil for one process. A step then has
	// Spec.Accumulate batches of each rank, rank 0 alone writes files, and an error that is not Common leaves the other
	// ranks waiting.
	Ranks *ranks.Group

	// Hooks need distinct names other than "rna", "ema", "tensorboard" and "metrics", which the run uses. Hooks that hold
	// resources are closed with the run, or at once if New or Resume fails. A resumed run needs the hooks that it was
	// started with.
	Hooks []hook.Hook

	// Log, if set, receives messages that are not errors: unreadable images, resumed state.
	Log func(format string, args ...any)

	// Profile is the number of steps to profile, MaxProfile at most, after a short warm-up: see package profile. Profiled,
	// if set, receives the profile and the path of its trace, "" for none.
	Profile  int
	Profiled func(p *profile.Profile, trace string)

	logged *logbook // set by the run
}

func (d *Deps) log(format string, args ...any) {
	if d.logged != nil {
		d.logged.add(fmt.Sprintf(format, args...))
	}
	if d.Log != nil {
		d.Log(format, args...)
	}
}

// checkDevice returns an error unless the device matches the config.
func checkDevice(c *Spec, dev device.Device) error {
	if dev == nil {
		return fmt.Errorf("no device to train on: give Deps.Device")
	}
	name, precision := dev.Name(), dev.DType().String()
	if dev.DType() == op.Float64 {
		name += "64"
	}
	if p, ok := device.As[device.Precise](dev); ok {
		precision = p.Precision()
	}
	if kind, _, _ := strings.Cut(c.Device, ":"); kind != "" && kind != "auto" && kind != name {
		return fmt.Errorf("device %s: the run is given a device %s", c.Device, name)
	}
	if c.Precision != "" && c.Precision != precision {
		return fmt.Errorf("precision %s: the device %s computes in %s", c.Precision, name, precision)
	}
	if p, ok := device.As[device.Processor](dev); ok {
		if way := c.Float32Way(); way != "" && way != "bf16x6" && way != p.Float32() {
			return fmt.Errorf("float32 %s: the device %s multiplies by %s", way, name, p.Float32())
		}
	}
	if r, ok := device.As[device.Repeatable](dev); ok && c.Deterministic && !r.Deterministic() {
		return fmt.Errorf("deterministic: the device %s was opened to use algorithms whose bits differ from run to run", name)
	}
	return nil
}

// first runs f on rank 0 and returns its error on all ranks.
func (d *Deps) first(f func() error) error {
	g := d.Ranks
	var err error
	if g.First() {
		err = f()
	}
	return g.Together(err)
}

// share returns an error of any rank on all of them. All ranks call it at the same place.
func (d *Deps) share(err error) error {
	if Common(err) || errors.Is(err, errStop) || errors.Is(err, ranks.ErrTimeout) { // all know it, or none answers
		return err
	}
	return d.Ranks.Together(err)
}

// host returns the context for work that a rank must not leave by itself: the caller's with one process, else one that
// never ends.
func (d *Deps) host(ctx context.Context) context.Context {
	if d.Ranks.Single() {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// checkBad returns an error if the ranks together met more unreadable images than allowed, even if none did by itself.
func (d *Deps) checkBad(bad, allowed, of int) error {
	if d.Ranks.Single() || bad <= allowed {
		return nil
	}
	return &ranks.RankError{Name: "all ranks", Err: &data.TooManyBad{Bad: bad, Of: of, Allowed: allowed}}
}
