//go:build gpu && cgo

package gputest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"onlinerna/cuda/check/plantable"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/number"
)

// docs/gpu.md has a table of all kinds of work that have run. Tests note their kinds; after all tests of a package its
// rows must equal the table's. ONLINERNA_WRITE=1 updates them.

// onCards says when and on which card rows of the table with these beginnings ran. On a card the tests print the rows.
var onCards = map[string]string{
	ByCuDNN: "2026-11-26, H100, cuDNN 9.19", ByCuBLAS: "2026-11-26, H100, cuBLAS 13.1", ByKernels: h100, Vectors: h100,
	Spaces: h100, Replayed: "2026-11-27, H100, cuDNN 9.19", Golden: "2026-11-27, H100, cuDNN 9.19",
}

const h100 = "2026-11-26, H100"

// The rows' beginnings, in the table's order.
const (
	ByCuDNN   = "by cuDNN: "
	ByCuBLAS  = "by cuBLAS: "
	ByKernels = "by kernels of this repository: "
	Vectors   = "SGD and all else on vectors, sums in float64"
	Replayed  = "training steps, captured and replayed"
	Golden    = "ResNet-20"
	Spaces    = "RNA's snapshots, their Gram matrix and combinations, sums in float64"
)

var order = []string{ByCuDNN, ByCuBLAS, ByKernels, Vectors, Replayed, Golden, Spaces}

// how names the reference of a row's tests.
var how = map[string]string{
	Vectors:  "the reference device (`devicetest`)",
	Replayed: "the bits of steps that are not replayed",
	Golden:   "PyTorch's losses, gradients and statistics",
	Spaces:   "the host's (`spacetest`)",
}

var noted struct {
	sync.Mutex
	ops  map[string]map[number.Precision]bool // kinds
	rows map[string]map[number.Precision]bool
}

// NVRTC is the version that compiles kernels without a card, downloaded by .ci/run, scripts/ptx_check.sh and
// scripts/cudnn_check.sh.
const NVRTC = "13.5"

// Bounds of all kernels, checked by package kernels' tests: registers of a thread, and the share of a multiprocessor's
// threads that run at a time, which hide memory latency with overlapping loads of 16 bytes.
const (
	MostRegisters  = 64
	LeastOccupancy = .5
)

// judges describes the check of a row by NVIDIA's own libraries without a card: cuDNN for its graphs, by the table of
// "make check-cudnn", and NVRTC for kernels, by package kernels' tests.
func judges(row, dir string) (string, error) {
	switch {
	case row == Spaces || row == Vectors || strings.HasPrefix(row, ByKernels):
		return fmt.Sprintf("NVRTC %s: at most %d registers, no spills, at least %.0f %% of a multiprocessor's "+
			"threads; its PTX, interpreted, computes the same", NVRTC, MostRegisters, 100*LeastOccupancy), nil
	case !strings.HasPrefix(row, ByCuDNN) || dir == "":
		return "", nil
	}
	t, err := plantable.Read(filepath.Join(dir, "cuda", "check", "cudnn", "table.tsv"))
	if err != nil {
		return "", err
	}
	if strings.Contains(row, "attention") {
		return t.Attentions(), nil
	}
	return t.Totals(), nil
}

func note(list *map[string]map[number.Precision]bool, name string, p number.Precision) {
	noted.Lock()
	defer noted.Unlock()
	if *list == nil {
		*list = map[string]map[number.Precision]bool{}
	}
	if (*list)[name] == nil {
		(*list)[name] = map[number.Precision]bool{}
	}
	(*list)[name][p] = true
}

// Ran notes a row if the test passes.
func Ran(t *testing.T, row string, p number.Precision) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			note(&noted.rows, row, p)
		}
	})
}

// RanOp notes the kind of an op that ran.
func RanOp(kind string, p number.Precision) { note(&noted.ops, kind, p) }

// rows returns the notes as Markdown. dir is the module's folder.
func rows(dir string) ([]string, error) {
	all := map[string]map[number.Precision]bool{}
	said := map[string]string{}
	for row, ps := range noted.rows {
		all[row], said[row] = ps, how[row]
	}
	// Ops with the same precisions share a row.
	kinds := map[string][]string{}
	for kind, ps := range noted.ops {
		by := ByKernels
		switch {
		case strings.HasPrefix(kind, "conv2d"), strings.HasPrefix(kind, "self_attention") && !strings.HasSuffix(kind, "bias"):
			by = ByCuDNN
		case strings.HasPrefix(kind, "linear"):
			by = ByCuBLAS
		}
		key := by + "|" + list(ps)
		kinds[key] = append(kinds[key], kind)
	}
	for key, names := range kinds {
		slices.Sort(names)
		by, _, _ := strings.Cut(key, "|")
		row := by + "`" + strings.Join(names, "`, `") + "`"
		all[row], said[row] = noted.ops[names[0]], how[Vectors]
	}
	var lines []string
	for row, ps := range all {
		card := "never"
		for beginning, ran := range onCards {
			if strings.HasPrefix(row, beginning) {
				card = ran
			}
		}
		judged, err := judges(row, dir)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s |", row, list(ps), said[row], judged, card))
	}
	return sorted(lines), nil
}

// sorted sorts lines in the table's order.
func sorted(lines []string) []string {
	rank := func(line string) int {
		return slices.IndexFunc(order, func(row string) bool { return strings.HasPrefix(line, "| "+row) })
	}
	slices.SortFunc(lines, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return lines
}

func list(ps map[number.Precision]bool) string {
	var names []string
	for p := number.Float32; p <= number.Float16; p++ {
		if ps[p] {
			names = append(names, p.String())
		}
	}
	return strings.Join(names, ", ")
}

const (
	tableStart = "<!-- GPU table: ONLINERNA_WRITE=1 make check-gpu writes it -->\n"
	tableHead  = "| op | precision | on the stand-in, compared with | for sm_80, 90 and 100, without a card | on a " +
		"real card |\n|-|-|-|-|-|\n"
	tableEnd = "<!-- end -->\n"
)

// checkTable compares the table's rows with the given beginnings with the notes of all tests. On a card, or without the
// page because the test binary runs on another machine, it prints them.
func checkTable(own []string) error {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.bench"} {
		f := flag.Lookup(name)
		if name == "test.skip" && !sim.Active() { // a card cannot inject faults
			continue
		}
		if f != nil && f.Value.String() != "" {
			return nil
		}
	}
	if testing.Short() || noGPU != "" || len(own) == 0 {
		return nil
	}
	dir := root()
	ran, err := rows(dir)
	if err != nil {
		return err
	}
	if !sim.Active() {
		fmt.Printf("all of this ran on this card:\n%s%s\n", tableHead, strings.Join(ran, "\n"))
		return nil
	}
	if dir == "" {
		return nil
	}
	path := filepath.Join(dir, "docs", "gpu.md")
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil { // packages are tested in parallel
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), tableStart)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table of GPU tests: add %q and %q", path, tableStart, tableEnd)
	}
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(table, tableHead), "\n"), "\n")
	others := slices.DeleteFunc(lines, func(line string) bool {
		return line == "" || slices.ContainsFunc(own, func(row string) bool {
			return strings.HasPrefix(line,
				"| "+row)
		})
	})
	want := tableHead + strings.Join(sorted(append(others, ran...)), "\n") + "\n"
	if table == want {
		return nil
	}
	if os.Getenv("ONLINERNA_WRITE") == "1" {
		return os.WriteFile(path, []byte(before+tableStart+want+tableEnd+after), 0o644)
	}
	return fmt.Errorf("the GPU table in %s differs from these tests; ONLINERNA_WRITE=1 make check-gpu updates it "+
		"to:\n%s", path, want)
}
