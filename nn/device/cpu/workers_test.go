package cpu

import (
	"fmt"
	"math"
	"testing"

	"onlinerna/nn/op"
)

// TestManyWorkers: products of few pixels, which have more blocks with more than 16 workers, have the bits of one
// worker, also with other ops in their epilogues.
func TestManyWorkers(t *testing.T) {
	products := func(n, channels, size, others, kernel int) func(t *testing.T) *builder {
		return func(t *testing.T) *builder {
			o := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{kernel / 2, kernel / 2}}
			b, _ := products(t, o, op.Shape{n, channels, size, size}, op.Shape{others, channels, kernel, kernel}, false)
			return b
		}
	}
	for name, build := range map[string]func(t *testing.T) *builder{
		"1×1": products(5, 40, 7, 600, 1), "3×3": products(5, 300, 7, 330, 3), "Winograd": products(5, 200, 14, 230, 3),
		"epilogues": func(t *testing.T) *builder { return expressions(t, 5, 601, 7) },
	} {
		for _, bfloat16 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/bfloat16 %v", name, bfloat16), func(t *testing.T) {
				var one *bound
				for _, workers := range []int{1, 48} {
					d, err := New(Options{Threads: workers, Level: at.String(), BFloat16: bfloat16})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { d.Close() })
					b := build(t)
					k := bind(t, d, &b.Program, b.weights, b.grouped(d))
					k.run(t)
					if workers == 1 {
						one = k
						continue
					}
					for _, s := range b.Steps {
						if k.regions[s.Out].Memory == nil { // the value stays inside a group
							continue
						}
						got, want := k.numbers(t, d, b.Values[s.Out], s.Out), one.numbers(t, d, b.Values[s.Out], s.Out)
						for j := range got {
							if math.Float32bits(got[j]) != math.Float32bits(want[j]) {
								t.Fatalf("%v: element %d is %v with %d workers, %v with one", s.Op, j, got[j], workers, want[j])
							}
						}
					}
				}
			})
		}
	}
}
