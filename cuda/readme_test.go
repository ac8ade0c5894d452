//go:build gpu && cgo

package cuda

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"onlinerna/cuda/sim"
	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
)

// What the README says has run is what these tests ran: they note it, and when all of them ran, their table has to be
// the README's. ONLINERNA_WRITE=1 writes it there.

// onCards says when a row of the table ran on a card, and on which: "2027-01-31, H200". On a card the tests print the rows.
var onCards = map[string]string{}

const (
	byCuDNN   = "by cuDNN: "
	byCuBLAS  = "by cuBLAS: "
	byKernels = "by kernels of this repository: "
	vectors   = "SGD and all else on vectors, sums in float64"
	replayed  = "training steps, captured and replayed"
	golden    = "ResNet-20"
	spaces    = "RNA's snapshots, their Gram matrix and combinations, sums in float64"
)

// how says what the tests of a row compare with.
var how = map[string]string{
	vectors:  "the reference device (`devicetest`)",
	replayed: "the bits of steps that are not replayed",
	golden:   "PyTorch's losses, gradients and statistics",
	spaces:   "the host's (`spacetest`)",
}

var noted struct {
	sync.Mutex
	ops  map[string]map[Precision]bool // kinds
	rows map[string]map[Precision]bool
}

func note(list *map[string]map[Precision]bool, name string, p Precision) {
	noted.Lock()
	defer noted.Unlock()
	if *list == nil {
		*list = map[string]map[Precision]bool{}
	}
	if (*list)[name] == nil {
		(*list)[name] = map[Precision]bool{}
	}
	(*list)[name][p] = true
}

// ran notes a row, when the test passes.
func ran(t *testing.T, row string, p Precision) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			note(&noted.rows, row, p)
		}
	})
}

// recorder is a Net that notes the kinds of ops that it runs.
type recorder struct{ *Net }

func (r recorder) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	k, err := r.Net.Bind(g, p, a)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := k()
		for _, s := range g.Steps {
			if err == nil {
				note(&noted.ops, s.Op.Kind(), r.opts.Precision)
			}
		}
		return err
	}, nil
}

// recording opens devices that note what they run.
func recording(open devicetest.Open) devicetest.Open {
	return func() (device.Device, error) {
		d, err := open()
		if err != nil {
			return nil, err
		}
		return recorder{d.(*Net)}, nil
	}
}

// table is what was noted, in Markdown.
func table() string {
	rows := map[string]map[Precision]bool{}
	said := map[string]string{}
	for row, ps := range noted.rows {
		rows[row], said[row] = ps, how[row]
	}
	// Ops with the same precisions share a row.
	kinds := map[string][]string{}
	for kind, ps := range noted.ops {
		by := byKernels
		switch {
		case strings.HasPrefix(kind, "conv2d"):
			by = byCuDNN
		case strings.HasPrefix(kind, "linear"):
			by = byCuBLAS
		}
		key := by + "|" + list(ps)
		kinds[key] = append(kinds[key], kind)
	}
	for key, names := range kinds {
		slices.Sort(names)
		by, _, _ := strings.Cut(key, "|")
		row := by + "`" + strings.Join(names, "`, `") + "`"
		rows[row], said[row] = noted.ops[names[0]], how[vectors]
	}
	var order []string
	for row := range rows {
		order = append(order, row)
	}
	slices.SortFunc(order, func(a, b string) int {
		rank := func(row string) int {
			for i, prefix := range []string{byCuDNN, byCuBLAS, byKernels, vectors, replayed, golden, spaces} {
				if strings.HasPrefix(row, prefix) {
					return i
				}
			}
			return 99
		}
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	b.WriteString("| op | precision | on the stand-in, compared with | on a real card |\n|-|-|-|-|\n")
	for _, row := range order {
		card := onCards[row]
		if card == "" {
			card = "never"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row, list(rows[row]), said[row], card)
	}
	return b.String()
}

func list(ps map[Precision]bool) string {
	var names []string
	for p := range Precision(len(precisions)) {
		if ps[p] {
			names = append(names, p.String())
		}
	}
	return strings.Join(names, ", ")
}

const tableStart, tableEnd = "<!-- GPU table: ONLINERNA_WRITE=1 make gpu-test writes it -->\n", "<!-- end -->\n"

// checkREADME compares the README's table with what ran, once all tests have. Where there is no README, as beside the binary on
// another machine, and on a card, it prints the table.
func checkREADME() error {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.bench"} {
		f := flag.Lookup(name)
		if name == "test.skip" && !sim.Active() { // a card has no faults on demand
			continue
		}
		if f != nil && f.Value.String() != "" {
			return nil
		}
	}
	if testing.Short() || noGPU != "" {
		return nil
	}
	if !sim.Active() {
		fmt.Printf("all of this ran on this card:\n%s", table())
		return nil
	}
	for _, file := range []string{"../README.md", "../../README.md"} { // of this folder, of bin/gpu-check
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		before, rest, found := strings.Cut(string(text), tableStart)
		was, after, ended := strings.Cut(rest, tableEnd)
		if !found || !ended {
			return fmt.Errorf("%s has no place for the table of what ran on the GPU: put %q and %q there", file, tableStart, tableEnd)
		}
		want := table()
		if was == want {
			return nil
		}
		if os.Getenv("ONLINERNA_WRITE") == "1" {
			return os.WriteFile(file, []byte(before+tableStart+want+tableEnd+after), 0o644)
		}
		return fmt.Errorf("%s says about the GPU what these tests did not run; ONLINERNA_WRITE=1 make gpu-test writes what they did:\n%s", file, want)
	}
	return nil
}
