//go:build gpu && cgo

package launches_test

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/launches"
	"onlinerna/cuda/check/ptx"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nvrtc"
)

// A way is a set of compiler options with the bounds for its kernels.
type way struct {
	name    string
	arch    int
	options []string
	bound   launches.Bound // for kernels that call none of NVIDIA's functions
	orders  []ptx.Order    // all of which must leave equal bits in memory
	beside  int            // error of approximate instructions, in units of the last place
}

var (
	// Without contraction each operation is rounded as by g++: bits are equal.
	apart = way{name: "apart", arch: 90, options: []string{"-fmad=false"},
		orders: []ptx.Order{ptx.Forward, ptx.Backward, 7}}
	// As on a card a·b + c is rounded once. The compilers for sm_100 and sm_90 differ. Approximations may have the
	// errors that the PTX ISA states for ex2.approx and rcp.approx.
	hopper    = way{name: "sm_90", arch: 90, orders: []ptx.Order{ptx.Forward}, bound: near, beside: 2}
	blackwell = way{name: "sm_100", arch: 100, orders: []ptx.Order{ptx.Backward}, bound: near, beside: -2}

	// Bounds for functions such as exp, which NVIDIA's library and the C library round differently.
	near = launches.Bound{Relative: 1e-6, Scaled: 1e-6, Ulps: 1}
)

// calls reports whether a kernel calls NVIDIA's own functions: maps and optimisers' passes by their text, others by
// name.
func calls(kernel, source string) bool {
	if kernel == "nn_step" || kernel == "nn_ratios" {
		_, body, _ := strings.Cut(source, "step.cu")
		return strings.Contains(body, "correction(")
	}
	if kernel == "nn_map" {
		_, body, _ := strings.Cut(source, "map.cu")
		return slices.ContainsFunc([]string{"expf(", "logf(", "tanhf(", "erff(", "sigmoid("},
			func(f string) bool { return strings.Contains(body, f) })
	}
	return strings.HasPrefix(kernel, "nn_cross_entropy") || strings.HasPrefix(kernel, "nn_target_loss") ||
		kernel == "nn_score" || kernel == "nn_softmax" || kernel == "nn_attention" || kernel == "nn_attention_grad"
}

// A line is the result for a kernel with one element type, compiled in one way; all maps share one.
type line struct {
	kernel, store, way string
	launches           int
	ran                map[string][]bool // its executed instructions, by source
	launches.Result
}

type lines struct {
	sync.Mutex
	all          map[string]*line
	instructions uint64
}

func (ls *lines) add(source, store, way string, k *ptx.Kernel, stats ptx.Stats, r launches.Result) {
	ls.Lock()
	defer ls.Unlock()
	key := k.Name + " " + store + " " + way
	l := ls.all[key]
	if l == nil {
		l = &line{kernel: k.Name, store: store, way: way, ran: map[string][]bool{}}
		ls.all[key] = l
	}
	l.launches++
	if l.ran[source] == nil {
		l.ran[source] = make([]bool, k.Instructions())
	}
	for i, n := range stats.Ran {
		l.ran[source][i] = l.ran[source][i] || n > 0
	}
	ls.instructions += stats.Instructions
	l.Words += r.Words
	l.Differ += r.Differ
	l.Relative, l.Scaled = max(l.Relative, r.Relative), max(l.Scaled, r.Scaled)
}

// recorded reads the stand-in's recordings in the folder RNA_SIM_RECORD; without it, or without NVIDIA's NVRTC, the
// test is skipped.
func recorded(t *testing.T) ([]*launches.Launch, map[string]*launches.Source) {
	gputest.NeedLibrary(t, lazy.NVRTC)
	folder := os.Getenv("RNA_SIM_RECORD")
	if folder == "" || sim.Active() {
		t.Skip(`needs launches that the stand-in recorded, and NVIDIA's NVRTC: "make check-ptx" has both`)
	}
	all, sources, err := launches.Read(folder)
	gputest.Check(t, err)
	own := map[string]bool{"nn_map": true, "nn_step": true, "nn_ratios": true} // other tests record their own kernels
	for _, names := range kernelsOf(t) {
		for _, name := range names {
			own[name] = true
		}
	}
	return slices.DeleteFunc(all, func(l *launches.Launch) bool { return !own[l.Kernel] }), sources
}

var kernelName = regexp.MustCompile(`__global__ void __launch_bounds__\([^)]*\) (\w+)`)

// kernelsOf lists the names of the kernels of each source.
func kernelsOf(t *testing.T) map[string][]string {
	t.Helper()
	files, err := kernels.Names()
	gputest.Check(t, err)
	all := map[string][]string{}
	for _, file := range files {
		for _, found := range kernelName.FindAllStringSubmatch(sourceOf(t, file, 0), -1) {
			all[file] = append(all[file], found[1])
		}
	}
	return all
}

func sourceOf(t *testing.T, file string, store int) string {
	t.Helper()
	if file == "rna.cu" {
		return kernels.RNA()
	}
	source, _, err := kernels.Net(file, store)
	gputest.Check(t, err)
	return source
}

// NVIDIA's compiler and g++ give kernels with the same results: the launches that the stand-in recorded in
// RNA_SIM_RECORD run again, as PTX, and leave the same memory. "make check-ptx" records those of the conformance suite.
func TestPTX(t *testing.T) {
	all, sources := recorded(t)
	bySource := map[string][]*launches.Launch{}
	for _, l := range all {
		bySource[l.Source] = append(bySource[l.Source], l)
	}
	found := &lines{all: map[string]*line{}}
	t.Run("all", func(t *testing.T) {
		for key, of := range bySource {
			source := sources[key]
			ways := []way{apart, hopper, blackwell}
			if of[0].Kernel == "nn_map" {
				switch {
				case !calls("nn_map", source.Text):
					ways = ways[:1]
				case key[len(key)-1]&1 == 0:
					ways = ways[1:2]
				default:
					ways = ways[2:]
				}
			}
			for _, w := range ways {
				of := of
				if len(ways) > 2 && w.name != apart.name {
					of = every(of, w.arch == blackwell.arch)
				}
				if len(of) == 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", of[0].Kernel, w.name, key), func(t *testing.T) {
					t.Parallel()
					check(t, w, source, of, found)
				})
			}
		}
	})
	t.Log(found.String())
	found.whole(t)
}

// every returns the launches for one of two compilers: each kernel's first, and every other one of the rest.
func every(all []*launches.Launch, second bool) (list []*launches.Launch) {
	seen := map[string]int{}
	for _, l := range all {
		i := seen[l.Kernel]
		seen[l.Kernel]++
		if i == 0 || (i%2 == 0) == second {
			list = append(list, l)
		}
	}
	return list
}

// check compiles a source in one way and replays its launches, in short mode most in one order of threads.
func check(t *testing.T, w way, source *launches.Source, of []*launches.Launch, found *lines) {
	text, err := nvrtc.PTX(w.arch, source.Key, source.Text, append(slices.Clone(source.Options), w.options...)...)
	gputest.Check(t, err)
	m, err := ptx.Parse(text, ptx.Options{Beside: w.beside})
	gputest.Check(t, err)
	store := strings.TrimPrefix(strings.Join(source.Options, " "), "-DSTORE=")
	seen := map[string]int{}
	for _, l := range of {
		orders := w.orders
		if seen[l.Kernel]++; testing.Short() && seen[l.Kernel] > 4 {
			orders = orders[:1]
		}
		k := m.Kernel(l.Kernel)
		if k == nil {
			t.Errorf("%s: the compiled source has no kernel %s", l.File, l.Kernel)
			continue
		}
		bound := w.bound
		if calls(l.Kernel, source.Text) {
			bound = near
		}
		var first []ptx.Block
		for _, order := range orders {
			got, stats, err := l.Replay(k, order)
			if err != nil {
				t.Errorf("%s: %v", l.File, err)
				break
			}
			if first != nil {
				if !launches.Same(first, got) {
					t.Errorf("%s: in another order of blocks and threads, %d, memory has other bits", l.File, order)
				}
				continue
			}
			first = got
			r, err := l.Compare(got, store == "1", bound)
			if err != nil {
				t.Errorf("%s, %v blocks of %v threads: %v", l.File, l.Blocks, l.Threads, err)
			}
			found.add(source.Key, store, w.name, k, stats, r)
		}
	}
}

// String is a table: for each kernel, element type and way the number of replayed launches and of numbers written, how
// many of these differ and by how much, and how many of the kernel's instructions ran.
func (ls *lines) String() string {
	var rows []*line
	total, words, differ := map[string]int{}, map[string]int{}, map[string]int{}
	for _, l := range ls.all {
		rows = append(rows, l)
		total[l.way] += l.launches
		words[l.way] += l.Words
		differ[l.way] += l.Differ
	}
	slices.SortFunc(rows, func(a, b *line) int {
		return cmp.Or(cmp.Compare(a.kernel, b.kernel), cmp.Compare(a.store, b.store), cmp.Compare(a.way, b.way))
	})
	var b strings.Builder
	for _, w := range []way{apart, hopper, blackwell} {
		fmt.Fprintf(&b, "%s: %d launches, %d numbers, %d with other bits\n", w.name, total[w.name], words[w.name],
			differ[w.name])
	}
	fmt.Fprintf(&b, "%d million instructions\n%-24s %5s %-7s %8s %8s %8s %9s %9s %s\n", ls.instructions/1e6, "kernel",
		"store", "way", "launches", "numbers", "differ", "by", "of most", "ran")
	for _, l := range rows {
		ran, of := 0, 0
		for _, instructions := range l.ran {
			for _, yes := range instructions {
				if of++; yes {
					ran++
				}
			}
		}
		fmt.Fprintf(&b, "%-24s %5s %-7s %8d %8d %8d %9.2g %9.2g %3d %%\n", l.kernel, l.store, l.way, l.launches,
			l.Words, l.Differ, l.Relative, l.Scaled, 100*ran/of)
	}
	return b.String()
}

// unasked are kernels that no precision, or not this one, launches; the last is for ranks with a --comm-precision.
var unasked = map[string]string{
	"nn_narrow": "0", "nn_widen": "0", "nn_sum_to_end": "0", "vec_narrow": "0", "vec_check": "01",
	"vec_next_scale": "01", "nn_rescale": "12",
	"nn_stats_of_sums": "0", "nn_grad_sums_of_sums": "0", "nn_norm_factors": "0",
	"ranks_sum": "02", "ranks_widen": "02",
}

// whole checks that each kernel of each source ran with each element type with which it is launched.
func (ls *lines) whole(t *testing.T) {
	for file, names := range kernelsOf(t) {
		stores := []string{"0", "1", "2"}
		if file == "rna.cu" {
			stores = []string{""}
		}
		for _, name := range names {
			for _, store := range stores {
				if ls.all[name+" "+store+" sm_90"] == nil && (store == "" || !strings.Contains(unasked[name], store)) {
					t.Errorf("%s: no launch of %s with storage %q was recorded", file, name, store)
				}
			}
		}
	}
}

// Code compiled for sm_80 and sm_89 equals that for sm_90.
func TestPTXOfArchitectures(t *testing.T) {
	gputest.NeedLibrary(t, lazy.NVRTC)
	if sim.Active() {
		t.Skip(`needs NVIDIA's NVRTC: "make check-ptx" has it`)
	}
	for file := range kernelsOf(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			code := func(arch int) string {
				text, err := nvrtc.PTX(arch, file, sourceOf(t, file, 1), "-DSTORE=1")
				gputest.Check(t, err)
				lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
					return strings.HasPrefix(line, ".target") || strings.HasPrefix(line, ".global") // unused constants
				})
				return strings.Join(lines, "\n")
			}
			want := code(90)
			for _, arch := range []int{80, 89} {
				if code(arch) != want {
					t.Errorf("the code for sm_%d is another one than for sm_90: TestPTX has to run it", arch)
				}
			}
		})
	}
}

// Faults planted in a kernel's compiled text are found.
func TestPTXFaults(t *testing.T) {
	all, sources := recorded(t)
	for _, x := range []struct{ kernel, store, old, new, want string }{
		{"nn_add", "1", "cvt.rn.bf16.f32", "cvt.rz.bf16.f32", "want"},
		{"nn_add", "2", "cvt.rn.f16.f32", "cvt.rz.f16.f32", "want"},
		{"nn_cross_entropy", "0", "bar.sync", "// bar.sync", "of shared memory"},
		{"nn_moments", "1", "bar.sync", "// bar.sync", "of shared memory"},
		{"nn_moments", "0", "sub.rn.f32", "add.rn.f32", "want"},
		{"rna_check", "", "shfl.sync.down", "shfl.sync.up", "want"},
		{"nn_score", "0", "setp.lt.s32", "setp.le.s32", ""},
		{"nn_max_pool", "2", "[%rd", "[4+%rd", "unknown constant"},
	} {
		var found error
		var m *ptx.Module
		for _, l := range all {
			s := sources[l.Source]
			store := strings.TrimPrefix(strings.Join(s.Options, " "), "-DSTORE=")
			if l.Kernel != x.kernel || store != x.store || found != nil {
				continue
			}
			if m == nil {
				text, err := nvrtc.PTX(90, s.Key, s.Text, append(slices.Clone(s.Options), "-fmad=false")...)
				gputest.Check(t, err)
				if !strings.Contains(text, x.old) {
					t.Fatalf("%s has no %s", x.kernel, x.old)
				}
				if m, found = ptx.Parse(strings.ReplaceAll(text, x.old, x.new), ptx.Options{}); found != nil {
					break
				}
			}
			got, _, err := l.Replay(m.Kernel(l.Kernel), ptx.Forward)
			if err == nil {
				_, err = l.Compare(got, store == "1", launches.Bound{})
			}
			found = err
		}
		if found == nil || !strings.Contains(found.Error(), x.want) {
			t.Errorf("%s with storage %s and %s: %v", x.kernel, x.store, x.new, found)
		}
	}
}
