package network

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// doubles is a Reducer of two ranks with equal gradients. It records its calls.
type doubles struct {
	t     *testing.T
	spoil bool // the other rank's loss is NaN
	calls []string
	guard device.Region
	under []func()
}

func (d *doubles) Guard(r device.Region) error {
	d.calls, d.guard = append(d.calls, "guard"), r
	return nil
}

func (d *doubles) Sum(grad device.Vector, part device.Span) error {
	d.calls = append(d.calls, fmt.Sprint(part))
	x := make([]float64, part.Len)
	if err := grad.ReadAt64(x, part.Off); err != nil {
		return err
	}
	d.under = append(d.under, func() { // delayed: nobody may touch the gradient before
		y := make([]float64, part.Len)
		if err := grad.ReadAt64(y, part.Off); err != nil {
			d.t.Error(err)
		}
		if !slices.Equal(x, y) {
			d.t.Errorf("gradient %v has changed after it was given to the ranks", part)
		}
		for i := range y {
			y[i] *= 2
		}
		if err := grad.WriteAt64(y, part.Off); err != nil {
			d.t.Error(err)
		}
	})
	return nil
}

func (d *doubles) Wait() error {
	d.calls = append(d.calls, "wait")
	for _, f := range d.under {
		f()
	}
	d.under = nil
	if d.spoil {
		nan := op.Tensor{Shape: op.Shape{1}, Data: []float64{math.NaN()}}
		return reference(op.Float32).Upload(d.guard, "", nan)
	}
	return nil
}

// Reducers get a gradient's buckets as soon as they are complete, the last ones first, and the update uses their sums,
// with and without weights and accumulation.
func TestReducer(t *testing.T) {
	for _, c := range []struct {
		name       string
		weight     float64
		accumulate bool
	}{{"while the backward pass goes on", 1, false}, {"weighed", .5, false}, {"accumulated", 1, true}} {
		t.Run(c.name, func(t *testing.T) {
			n, plain := open(t, cpuDevice(t, 1), "resnet20", 2), open(t, cpuDevice(t, 1), "resnet20", 2)
			r := &doubles{t: t}
			o, p := step1(vector(t, n)), step1(vector(t, plain))
			o.Reducer, o.Weight = r, c.weight
			o.Update.Numbers.Scale = 1 / (2 * c.weight)
			if c.accumulate {
				o.Sum, o.First, o.Update.Numbers.Scale = vector(t, n), true, 1./(2*4)
			}
			for k := range 4 {
				var told phases
				traced := k == 3
				if traced {
					n.Trace(&told)
				}
				for _, x := range []struct {
					n *Network
					s StepOptions
				}{{n, o}, {plain, p}} {
					q, err := x.n.Start(noise(4, 32, uint64(k)), x.s)
					if err != nil {
						t.Fatal(err)
					}
					if _, _, err := q.Wait(); err != nil {
						t.Fatal(err)
					}
				}
				calls := []string{"guard"}
				for _, b := range Buckets(n.Tensors()) {
					calls = append(calls, fmt.Sprint(b))
				}
				var want []string
				for _, x := range calls {
					if want = append(want, x); traced && o.overlaps() { // tracing waits for each call
						want = append(want, "wait")
					}
				}
				if want = append(want, "wait"); !slices.Equal(r.calls, want) {
					t.Fatalf("calls %v, want %v", r.calls, want)
				}
				r.calls = nil
				if traced && (!slices.Contains(told.list, Communication) || told.late) {
					t.Errorf("phases %v, out of order: %v", told.list, told.late)
				}
				n.Trace(nil)
			}
			if x := numbers(t, n.Params); !slices.Equal(x, numbers(t, plain.Params)) { // factors of 2 cause no rounding
				t.Error("the sums give other weights than the gradients")
			}
			r.spoil = true
			before := numbers(t, n.Params)
			q, err := n.Start(noise(4, 32, 9), o)
			if err == nil {
				_, _, err = q.Wait()
			}
			if err != nil || !slices.Equal(before, numbers(t, n.Params)) {
				t.Errorf("a step by a loss of another rank that is no number: %v", err)
			}
		})
	}
}

// Buckets cover each element once, the last ones first.
func TestBuckets(t *testing.T) {
	for _, sizes := range [][]int{{3}, {1 << 25, 5, 1 << 19}, slices.Repeat([]int{1 << 17}, 1000), {10, 1 << 18, 1}} {
		var tensors []device.Span
		end := 0
		for _, n := range sizes {
			tensors = append(tensors, device.Span{Off: end, Len: n})
			end += n
		}
		whole := len(tensors)
		for i, b := range Buckets(tensors) {
			if b.Off+b.Len != end {
				t.Fatalf("%v: bucket %v is not before %d", sizes, b, end)
			}
			held := 0
			for whole > 0 && tensors[whole-1].Off >= b.Off {
				whole--
				held++
			}
			most := bucket
			if i == 0 {
				most = firstBucket
			}
			if held == 0 || held > 1 && b.Len > most || whole > 0 && tensors[whole-1].Off+tensors[whole-1].Len != b.Off {
				t.Errorf("bucket %d is %v, of %d tensors", i, b, held)
			}
			end = b.Off
		}
		if end != 0 {
			t.Errorf("elements up to %d are in no bucket", end)
		}
	}
}
