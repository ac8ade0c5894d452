//go:build gpu && cgo

// Count counts the instructions of kernels in a training step, as an interpreter of PTX runs them, for each byte that
// the kernels must move. It plans the steps for a card on paper, has NVIDIA's NVRTC compile the kernels, and runs some
// blocks of each launch on memory of zeros. It writes the table of package datasheet, or compares with it.
package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"onlinerna/cuda"
	"onlinerna/cuda/check/datasheet"
	"onlinerna/cuda/check/ptx"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/nvrtc"
	"onlinerna/nn/device"
	_ "onlinerna/nn/zoo"
	"onlinerna/train/bench"
)

// A launch is a kernel's launch in a step, with its bytes and how often a step has it.
type launch struct {
	Kernel, Source string
	Options        []string
	Grid, Block    driver.Dim
	Cells          []uint64
	Bytes          int64
	Count          int
}

// recorder is a card on paper that records launches.
type recorder struct {
	*cuda.PaperNet
	found map[string]*launch
}

// Observe implements device.Observed.
func (r *recorder) Observe(f device.Observer) error {
	if f == nil {
		return r.PaperNet.Observe(nil)
	}
	return r.Context().Observe(func(w driver.Work, give func() error) error {
		if l := w.Launch; l != nil {
			key := fmt.Sprint(w.Name, l.Grid, l.Block, w.Read, w.Write)
			if r.found[key] == nil {
				m := l.Kernel.Module()
				r.found[key] = &launch{w.Name, m.Source, m.Options, l.Grid, l.Block, slices.Clone(l.Cells),
					w.Read + w.Write, 0}
			}
			r.found[key].Count++
		}
		return f(nil, device.Work{Name: w.Name, Read: w.Read, Write: w.Write, FLOP: w.FLOP}, give)
	})
}

// plan lists the launches of a step of ResNet-50, and those of ViT-B/16's layer normalisations.
func plan(precision string) ([]*launch, error) {
	p, err := cuda.ParsePrecision(precision)
	if err != nil {
		return nil, err
	}
	card, err := cuda.FindCard("h100")
	if err != nil {
		return nil, err
	}
	d, err := cuda.OpenPaper(card, cuda.NetOptions{Precision: p})
	if err != nil {
		return nil, err
	}
	var list []*launch
	for _, model := range []string{"resnet50", "vit_b_16"} {
		r := &recorder{d, map[string]*launch{}}
		if _, err = bench.RunTraffic(context.Background(), r, bench.TrafficOptions{
			Options: bench.Options{Model: model, Batch: 256}, Least: d.Least, Window: 10}); err != nil {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(r.found)) {
			if l := r.found[key]; model == "resnet50" || strings.HasPrefix(l.Kernel, "nn_layer_norm") {
				list = append(list, l)
			}
		}
	}
	return list, device.Closed(err, d.Close())
}

// planned runs plan in a process of its own, since a card on paper replaces NVIDIA's libraries.
func planned(precision, fuse string) (list []*launch, err error) {
	c := exec.Command("/proc/self/exe", "-plan", precision)
	c.Env, c.Stderr = append(os.Environ(), "RNA_CUDA_FUSE="+fuse), os.Stderr
	text, err := c.Output()
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	return list, err
}

// partBytes is the size of Part in step.h, and partElements the elements of one.
const partBytes, partElements = 48, 8 << 10

// memory is zero, except for the parts of an optimiser's step.
func (l *launch) memory() *ptx.Memory {
	if l.Kernel != "nn_step" {
		return ptx.NewZeros()
	}
	parts := make([]byte, partBytes*int(uint32(l.Cells[6])))
	for at := 0; at < len(parts); at += partBytes {
		binary.LittleEndian.PutUint64(parts[at:], uint64(at/partBytes)*partElements)
		binary.LittleEndian.PutUint64(parts[at+8:], partElements)
	}
	return ptx.NewZeros(ptx.Block{At: l.Cells[5], Data: parts})
}

// instructions counts those of all threads, from a few blocks.
func (l *launch) instructions(m *ptx.Module) (float64, error) {
	k := m.Kernel(l.Kernel)
	if k == nil {
		return 0, fmt.Errorf("the source of %s has no such kernel", l.Kernel)
	}
	var parameters [][]byte
	for i, size := range k.Sizes() {
		parameters = append(parameters, binary.LittleEndian.AppendUint64(nil, l.Cells[i])[:size])
	}
	blocks := l.Grid.X * l.Grid.Y * l.Grid.Z
	only := slices.Compact([]int{0, blocks / 4, blocks / 2, 3 * blocks / 4})
	stats, err := k.Run(ptx.Launch{Blocks: [3]int{l.Grid.X, l.Grid.Y, l.Grid.Z},
		Threads: [3]int{l.Block.X, l.Block.Y, l.Block.Z}, Parameters: parameters, Memory: l.memory(), Only: only})
	var sum uint64
	for i, n := range stats.Ran {
		sum += n * k.Cost(i)
	}
	return float64(sum) * float64(blocks) / float64(len(only)), err
}

// mostShapes is the number of launches of a kernel that are counted: those with the most bytes.
const mostShapes = 3

// count makes the table for steps in some precisions.
func count(precisions []string) (*datasheet.Counts, error) {
	type sum struct{ instructions, bytes float64 }
	sums := map[string]*sum{}
	modules := map[string]*ptx.Module{}
	done, shapes := map[string]bool{}, map[string]int{}
	for _, p := range precisions {
		for _, fuse := range []string{"always", "never"} {
			list, err := planned(p, fuse)
			if err != nil {
				return nil, err
			}
			slices.SortStableFunc(list, func(a, b *launch) int { return cmp.Compare(b.Bytes, a.Bytes) })
			for _, l := range list {
				store := strings.TrimPrefix(strings.Join(l.Options, " "), "-DSTORE=")
				key := datasheet.Key(l.Kernel, cmp.Or(store, "0"))
				same := fmt.Sprint(key, l.Grid, l.Block, l.Bytes)
				if l.Bytes < datasheet.Small || done[same] || shapes[key] == mostShapes {
					continue
				}
				done[same] = true
				shapes[key]++
				text := l.Source + store
				if modules[text] == nil {
					code, err := nvrtc.PTX(90, l.Kernel, l.Source, l.Options...)
					if err == nil {
						modules[text], err = ptx.Parse(code, ptx.Options{})
					}
					if err != nil {
						return nil, err
					}
				}
				n, err := l.instructions(modules[text])
				if err != nil {
					return nil, err
				}
				if sums[key] == nil {
					sums[key] = &sum{}
				}
				sums[key].instructions += n * float64(l.Count)
				sums[key].bytes += float64(l.Bytes) * float64(l.Count)
			}
		}
	}
	t := &datasheet.Counts{Digest: kernels.Digest(), PerByte: map[string]float64{}}
	for key, s := range sums {
		t.PerByte[key] = s.instructions / s.bytes
	}
	return t, nil
}

func run(precisions []string, file string, compare bool) error {
	t, err := count(precisions)
	if err != nil {
		return err
	}
	if !compare {
		return os.WriteFile(file, []byte(t.String()), 0o644)
	}
	known, err := datasheet.ReadCounts(file)
	if err != nil {
		return err
	}
	if err := known.Compare(t); err != nil {
		return fmt.Errorf("%s: %w; run make check-ptx and look at the table", file, err)
	}
	fmt.Printf("%d counts are the same as in %s\n", len(t.PerByte), file)
	return nil
}

func main() {
	precisions := flag.String("precisions", "float32,bfloat16,float16", "precisions")
	table := flag.String("table", "cuda/check/datasheet/instructions.tsv", "table to write")
	compare := flag.Bool("compare", false, "compare with the table")
	only := flag.String("plan", "", "write the launches of a step in this precision as JSON")
	flag.Parse()
	var err error
	if *only != "" {
		var list []*launch
		if list, err = plan(*only); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(list)
		}
	} else {
		err = run(strings.Split(*precisions, ","), *table, *compare)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}
