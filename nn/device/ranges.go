package device

// Annotated is a Device whose work a profiler outside the program shows in named ranges.
type Annotated interface {
	Device
	// Profiled reports whether there is a profiler. Without one, ranges do nothing.
	Profiled() bool
	// Begin opens a range of the work that is issued from then on, inside those that are open. End closes the range that
	// was opened last.
	Begin(name string)
	End()
}

// Ranges names work of a device for a profiler. A nil Ranges does nothing.
type Ranges struct {
	d      Annotated
	turned bool // Turn has opened a range
}

// RangesOf returns the ranges of a device's work, nil if there is no profiler.
func RangesOf(d Device) *Ranges {
	if a, ok := As[Annotated](d); ok && a.Profiled() {
		return &Ranges{d: a}
	}
	return nil
}

// In calls f in a range.
func (r *Ranges) In(name string, f func() error) error {
	if r == nil {
		return f()
	}
	r.d.Begin(name)
	defer r.d.End()
	return f()
}

// Turn closes the range that the last Turn opened, and opens one unless the name is empty. Ranges opened since then
// must be closed.
func (r *Ranges) Turn(name string) {
	if r == nil {
		return
	}
	if r.turned {
		r.d.End()
	}
	if r.turned = name != ""; r.turned {
		r.d.Begin(name)
	}
}
