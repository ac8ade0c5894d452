package train

import (
	"context"
	"fmt"
	"strings"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/hook"
	"onlinerna/train/profile"
	"onlinerna/train/ranks"
)

// Deps are what a run is given beside its Spec. Only Device is needed.
type Deps struct {
	Device device.Device // which stays the caller's

	// Train and Val are images in place of Spec.Data and Spec.ValData: sets of data, or one's own. They stay the caller's
	// to close, and a resumed run is given them again. Val may be nil. Val's classes are Train's.
	Train, Val data.Dataset

	// DataChanged lets a resumed run go on with other images than those of its checkpoint, of the same number.
	DataChanged bool

	// Ranks are the processes that train together, each with a device and a run of its own; nil for one. A step then has
	// Spec.Accumulate batches of each rank, rank 0 alone writes files, and an error that is not Common leaves the other
	// ranks waiting.
	Ranks *ranks.Group

	// Hooks have names of their own, other than "rna", "ema", "tensorboard" and "metrics", which are the run's. Those that
	// hold something are closed with the run, or at once if New or Resume fails. A resumed run is given the hooks that it
	// was started with.
	Hooks []hook.Hook

	// Log, if set, is told what is worth a line but no error: unreadable images, what was resumed.
	Log func(format string, args ...any)

	// Profile is how many steps, MaxProfile at most, are profiled once a few have warmed up: see package profile.
	// Profiled, if set, is given the profile, and where its trace was written, "" for nowhere.
	Profile  int
	Profiled func(p *profile.Profile, trace string)
}

func (d *Deps) log(format string, args ...any) {
	if d.Log != nil {
		d.Log(format, args...)
	}
}

// checkDevice is an error unless the device is what the config asks for.
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
	if r, ok := device.As[device.Repeatable](dev); ok && c.Deterministic && !r.Deterministic() {
		return fmt.Errorf("deterministic: the device %s was opened to use algorithms whose bits differ from run to run", name)
	}
	return nil
}

// first has rank 0 do something, with the error on all ranks.
func (d *Deps) first(f func() error) error {
	g := d.Ranks
	var err error
	if g.First() {
		err = f()
	}
	return g.Together(err)
}

// host is the context of work that a rank must not leave by itself: with one process the caller's, else one that does
// not end.
func (d *Deps) host(ctx context.Context) context.Context {
	if d.Ranks.Single() {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// checkBad is an error if ranks have met more unreadable images than are allowed, though none has by itself.
func (d *Deps) checkBad(bad, allowed, of int) error {
	if d.Ranks.Single() || bad <= allowed {
		return nil
	}
	return &ranks.RankError{Name: "all ranks", Err: &data.TooManyBad{Bad: bad, Of: of, Allowed: allowed}}
}
