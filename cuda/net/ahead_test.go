//go:build gpu && cgo

package net

import (
	"strings"
	"testing"
	"time"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// Plans that cuDNN compiles are made in threads before the first step, which a line says, and others every few seconds.
// Plans made ahead are not compiled again.
func TestFaultOfCompiling(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	run := func() (d *Device, said []string) {
		d, err := Open(0, Options{Precision: number.BFloat16, Fuse: FuseTimed,
			Warn:    func(line string) { said = append(said, line) },
			Context: driver.Options{KernelCache: t.TempDir(), ExactMemory: true}})
		check(t, err)
		t.Cleanup(func() { check(t, d.Close()) })
		_, err = lossGradient(t, netOn(t, d, bottlenecks), 8)
		check(t, err)
		return d, said
	}
	defer func(usual time.Duration) { told = usual }(told)
	told = 50 * time.Millisecond
	t.Setenv("RNA_SIM_COMPILE", "100")
	d, said := run()
	if len(said) < 2 || !strings.Contains(said[0], "compiles plans of ") || !strings.Contains(said[1], " have plans after 0 s") {
		t.Errorf("lines %q", said)
	}
	told = time.Hour
	t.Setenv("RNA_SIM_COMPILE", "0")
	properties, err := d.dnn.Properties()
	check(t, err)
	var graphs []*dnn.Graph
	for _, p := range (&Planner{d}).Plans() {
		graphs = append(graphs, p.Graph())
	}
	folder := t.TempDir()
	check(t, dnn.MakeAhead(properties, graphs, d.planning(), 2, func(m dnn.Made) error {
		_, err := m.Write(folder)
		return err
	}))
	t.Setenv(aheadVariable, t.TempDir())
	if _, said := run(); len(said) != 1 || !strings.Contains(said[0], "are for another card, cuDNN, net or batch") {
		t.Errorf("without plans: lines %q", said)
	}
	t.Setenv(aheadVariable, folder)
	if _, said := run(); len(said) > 0 {
		t.Errorf("with plans made ahead: lines %q", said)
	}
}
