package device

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"onlinerna/nn/op"
)

// Options are a user's choices about a device of any kind. Drivers say which of them their kind has.
type Options struct {
	Threads       int    // workers of a processor; 0: its own choice
	Direct        bool   // no convolution of a processor runs by Winograd's algorithm
	Precision     string // one of the driver's; empty: its default
	Float32       string // one of the driver's ways to multiply float32; empty: its default
	Deterministic bool   // equal bits in each run, of devices with a queue
	DebugSync     bool   // each piece of work is waited for, of devices with a queue
	Eager         bool   // steps are not recorded, of devices with a queue

	Warn func(message string) // tells the user something; it must not be nil
}

// Driver opens the devices of one kind.
type Driver struct {
	Precisions []string // the names of the kind's precisions; the first is usual
	Float32    []string // ways to multiply float32; nil: a single one
	Units      bool     // a name may end with a colon and a unit, as cuda:1
	Queue      bool     // there is a queue of work, with its options

	// Several lists the units that a name for several ranks selects: all, or units separated by commas. If nil, ranks
	// share the one device of the kind.
	Several func(units string) ([]string, error)

	// Default is the precision that a run records if none is asked for; nil records none.
	Default func(unit string) string

	// Auto chooses a unit if the user leaves the choice to the program, and reports whether there is one. It writes the
	// reasons to log. Drivers of a higher Preference are asked first; nil is never asked.
	Auto       func(log io.Writer) (unit string, found bool)
	Preference int

	Open func(unit string, o Options) (Device, error)
}

// Recorded is the precision that a run on a unit records: that asked for, or the default. Drivers without a default
// record nothing for their usual precision.
func (d Driver) Recorded(unit, precision string) string {
	switch {
	case precision == "":
		if d.Default == nil {
			return ""
		}
		return d.Default(unit)
	case d.Default == nil && slices.Index(d.Precisions, precision) == 0:
		return ""
	}
	return precision
}

var (
	mu      sync.RWMutex
	drivers = map[string]Driver{}
)

// Register makes a kind of device known by name. Packages of devices call it when they are initialised; it panics if
// the name is taken.
func Register(kind string, d Driver) {
	mu.Lock()
	defer mu.Unlock()
	if _, taken := drivers[kind]; taken || d.Open == nil || len(d.Precisions) == 0 {
		panic(fmt.Sprintf("device: register %q: taken, or without Open and Precisions", kind))
	}
	drivers[kind] = d
}

// Find is the driver of a kind.
func Find(kind string) (d Driver, ok bool) {
	mu.RLock()
	defer mu.RUnlock()
	d, ok = drivers[kind]
	return d, ok
}

// Parse splits a device's name into its kind and its unit: cuda and 1 of cuda:1.
func Parse(name string) (kind, unit string) {
	kind, unit, _ = strings.Cut(name, ":")
	return kind, unit
}

// Of is the driver of a device's name, without any for an unknown kind.
func Of(name string) Driver {
	kind, _ := Parse(name)
	d, _ := Find(kind)
	return d
}

// Usual is the precision that a run on the device of this name records if none is asked for, or empty.
func Usual(name string) string {
	_, unit := Parse(name)
	return Of(name).Recorded(unit, "")
}

// Closed joins an error of a device's work with that of its Close, which may have joined several. A cause that both have
// is reported once.
func Closed(err, end error) error {
	if all, ok := end.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			err = Closed(err, e)
		}
		return err
	}
	switch {
	case end == nil: // err stays as it is
		return err
	case err == nil:
		return end
	case known(err, end):
		return err
	}
	return errors.Join(err, end)
}

// known reports whether err has all causes of end.
func known(err, end error) bool {
	switch e := end.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return known(err, cause)
		}
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(cause error) bool { return !known(err, cause) })
	}
	return errors.Is(err, end)
}

// Kinds lists the kinds by name.
func Kinds() []string {
	mu.RLock()
	defer mu.RUnlock()
	return slices.Sorted(maps.Keys(drivers))
}

// Preferred lists the kinds that may be taken without being asked for, the best first.
func Preferred() []string {
	kinds := slices.DeleteFunc(Kinds(), func(kind string) bool { d, _ := Find(kind); return d.Auto == nil })
	slices.SortStableFunc(kinds, func(a, b string) int {
		x, _ := Find(a)
		y, _ := Find(b)
		return cmp.Compare(y.Preference, x.Preference)
	})
	return kinds
}

// Auto is the name of the device to take for a user who leaves the choice to the program, empty if there is none.
func Auto(log io.Writer) string {
	for _, kind := range Preferred() {
		d, _ := Find(kind)
		if unit, found := d.Auto(log); found {
			if unit != "" {
				return kind + ":" + unit
			}
			return kind
		}
	}
	return ""
}

// The reference devices compute by the definitions of ops.
func init() {
	for kind, t := range map[string]op.DType{"reference": op.Float32, "reference64": op.Float64} {
		Register(kind, Driver{
			Precisions: []string{t.String()},
			Open:       func(string, Options) (Device, error) { return NewReference(t), nil },
		})
	}
}
