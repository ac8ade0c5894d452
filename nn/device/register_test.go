package device

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/op"
)

func TestRegister(t *testing.T) {
	before := drivers
	defer func() { drivers = before }()
	drivers = map[string]Driver{}
	open := func(string, Options) (Device, error) { return NewReference(op.Float32), nil }
	found := ""
	Register("slow", Driver{Precisions: []string{"float32", "bfloat16"}, Preference: 1, Open: open,
		Auto: func(io.Writer) (string, bool) { return "", true }})
	Register("fast", Driver{Precisions: []string{"bfloat16"},
		Default: func(unit string) string { return "bfloat16" + unit }, Preference: 2, Units: true, Open: open,
		Auto: func(log io.Writer) (string, bool) { io.WriteString(log, "looked"); return found, found != "" }})
	Register("odd", Driver{Precisions: []string{"float64"}, Open: open})
	if !slices.Equal(Kinds(), []string{"fast", "odd", "slow"}) || !slices.Equal(Preferred(), []string{"fast", "slow"}) {
		t.Errorf("kinds %q, preferred %q", Kinds(), Preferred())
	}
	var log strings.Builder
	if got := Auto(&log); got != "slow" || log.String() != "looked" {
		t.Errorf("%q is taken, with %q", got, log.String())
	}
	found = "3"
	if got := Auto(io.Discard); got != "fast:3" {
		t.Errorf("%q is taken", got)
	}
	for _, c := range [][3]string{{"slow", "", ""}, {"slow", "float32", ""}, {"slow", "bfloat16", "bfloat16"},
		{"fast", "", "bfloat163"}, {"fast", "bfloat16", "bfloat16"}, {"odd", "", ""}} {
		d, ok := Find(c[0])
		if got := d.Recorded("3", c[1]); !ok || got != c[2] {
			t.Errorf("%s records %q of %q, want %q", c[0], got, c[1], c[2])
		}
	}
	if p := Usual("none"); p != "" { // as of a run that recorded no device
		t.Errorf("an unknown kind records %q", p)
	}
	if _, ok := Find("none"); ok {
		t.Error("an unknown kind is found")
	}
	defer func() {
		if recover() == nil {
			t.Error("a name is registered twice")
		}
	}()
	Register("odd", Driver{Precisions: []string{"float32"}, Open: open})
}

// A cause that several closing functions report is told once.
func TestClosed(t *testing.T) {
	lost, other := errors.New("lost"), errors.New("other")
	work := fmt.Errorf("step 3: %w", lost)
	for _, c := range []struct {
		err, end error
		want     string
	}{
		{work, nil, "step 3: lost"},
		{work, lost, "step 3: lost"},
		{work, errors.Join(lost, fmt.Errorf("close: %w", lost)), "step 3: lost"},
		{work, fmt.Errorf("close: %w", errors.Join(lost, lost)), "step 3: lost"},
		{work, errors.Join(lost, other), "step 3: lost\nother"},
		{nil, errors.Join(lost, lost), "lost"},
	} {
		if got := Closed(c.err, c.end); got == nil || got.Error() != c.want {
			t.Errorf("%v and %v: %v, want %s", c.err, c.end, got, c.want)
		}
	}
	if err := Closed(nil, nil); err != nil {
		t.Error(err)
	}
}
