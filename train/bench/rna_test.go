package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/rna"
)

const testDim = 30_000

func hostPlace(t *testing.T) *Place {
	t.Helper()
	d, err := onCPU()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	p, err := HostPlace(d, testDim, 2)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// aside is a place like a GPU: its memory is not the host's.
func aside(t *testing.T) *Place {
	p := hostPlace(t)
	p.Name, p.Device, p.Threads, p.FromHost = "card:0", "some card", 0, make(rna.Slice32, testDim)
	return p
}

func onCPU() (device.Device, error) { return cpu.New(cpu.Options{Threads: 2}) }

func measured(t *testing.T) *RNAResult {
	t.Helper()
	parts := 0
	o := RNAOptions{
		Places: []*Place{hostPlace(t), aside(t)}, Windows: []int{1, 3, 10}, Repeats: 2, Seed: 5,
		Device: onCPU, Net: Options{Model: "lenet", Batch: 4, Steps: 2},
		Progress: func(done, total int, next string) {
			if want := 3 + 3*3 + 3*4; done != parts || total != want || next == "" {
				t.Errorf("part %d of %d, want %d of %d: %q", done, total, parts, want, next)
			}
			parts++
		},
	}
	r, err := RunRNA(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if parts != 3+3*3+3*4 {
		t.Errorf("%d parts", parts)
	}
	return r
}

func TestRunRNA(t *testing.T) {
	r := measured(t)
	var got []string
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }
	for _, p := range r.Passes {
		got = append(got, fmt.Sprintf("%s %s %d", p.Place, p.Pass, p.N))
		s := p.Seconds
		if !(0 < s.Min && s.Min <= s.Q1 && s.Q1 <= s.Median && s.Median <= s.Q3 && s.Q3 <= s.Max) || p.Gram <= 0 ||
			p.Solve <= 0 || p.Combine <= 0 {
			t.Errorf("%+v", p)
		}
		if p.Repeats < 2 || p.Repeats > 20 {
			t.Errorf("%s: %d repeats", p.Pass, p.Repeats)
		}
		vectors := 2*p.N + 2
		if p.Pass != FullPass {
			vectors = 2*p.N + 5
		}
		speed := r.place(p.Place).Bandwidth
		if !near(p.GB, 4e-9*testDim*float64(vectors)) || !near(p.GBS, p.GB/s.Median) || !near(p.OfBandwidth, p.GBS/speed) {
			t.Errorf("%+v at %g GB/s", p, speed)
		}
		once := 4e-9 * testDim * float64(p.N+1) / speed
		if !near(p.Readings, s.Median/once) || !near(p.OfNet, s.Median/r.Net.Seconds.Median) ||
			!near(p.OfEpoch, s.Median/r.Net.Epoch) {
			t.Errorf("%+v beside %+v", p, r.Net)
		}
	}
	var want []string
	for _, place := range []string{"cpu", "card:0"} {
		for _, n := range []int{1, 3, 10} {
			want = append(want, fmt.Sprintf("%s full %d", place, n), fmt.Sprintf("%s online %d", place, n))
			if place != "cpu" {
				want = append(want, fmt.Sprintf("%s %s %d", place, HostOnlinePass, n))
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("passes %q, want %q", got, want)
	}
	n := r.Net
	if n.Model != "lenet" || n.Batch != 4 || n.Why != "as asked" || n.Steps != 2 || n.Device != "cpu" || n.Threads != 2 ||
		n.ImageSize != 28 {
		t.Errorf("%+v", n)
	}
	if !(0 < n.Seconds.Min && n.Seconds.Median < n.Step.Median) || !near(n.Images, 4/n.Step.Median) ||
		!near(n.Epoch, 1281167/n.Images) {
		t.Errorf("%+v", n)
	}
}

func TestWriteRNA(t *testing.T) {
	r := measured(t)
	r.Places[0].LeftOut, r.Places[0].Free, r.NoGPU = []int{40, 50}, 5e9, "there is none"
	var table, lines, out, svg bytes.Buffer
	if err := errors.Join(r.WriteTable(&table), r.WriteCSV(&lines), json.NewEncoder(&out).Encode(r),
		r.Plot(&svg, "svg")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"vectors of 30,000 float32 elements, 0.120 MB each", "2 threads", "card:0: some card; memory of ",
		"no GPU: there is none",
		"N = 40, 50 are left out, from 5.04 MB on: 5.00 GB are free",
		"forward + backward of lenet on cpu", "batch 4: as asked", "\ncpu, full", "\ncard:0, " + HostOnlinePass,
		"comes from the host's memory",
		"an epoch of ImageNet, 1,281,167 images", "a pass with N = 10 at its end (cpu, online) adds",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &table)
		}
	}
	rows, err := csv.NewReader(&lines).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	if len(rows) != 2+len(r.Passes) || rows[1][column["pass"]] != "forward+backward" || rows[1][column["batch"]] != "4" {
		t.Errorf("%d lines: %q", len(rows), rows[:2])
	}
	for i, p := range r.Passes {
		row := rows[i+2]
		if v, err := strconv.ParseFloat(row[column["median_s"]], 64); err != nil || math.Abs(v-p.Seconds.Median) > 1e-5*v ||
			row[column["n"]] != fmt.Sprint(p.N) || row[column["pass"]] != p.Pass {
			t.Errorf("line %d is %q, want %+v", i+2, row, p)
		}
	}
	var again RNAResult
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&again); err != nil || !slices.Equal(again.Passes, r.Passes) || *again.Net != *r.Net {
		t.Errorf("JSON: %v, %+v", err, again)
	}
	for _, want := range []string{"card:0, full: some card", "forward + backward of lenet on cpu, batch 4"} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("the figure lacks %q", want)
		}
	}
	for d := xml.NewDecoder(&svg); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	r.Net = nil
	table.Reset()
	if err := errors.Join(r.WriteTable(&table), r.Plot(io.Discard, "svg"), r.WriteCSV(io.Discard)); err != nil ||
		strings.Contains(table.String(), "ImageNet") {
		t.Errorf("without a network: %v\n%s", err, &table)
	}
}

// wrong computes slightly wrong products.
type wrong struct{ rna.Space }

func (w wrong) GramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	err := w.Space.GramRow(row, r, with)
	for i := range row {
		row[i] *= 1 + 1e-6
	}
	return err
}

// drifting has errors that grow with each call.
type drifting struct {
	rna.Space
	calls *float64
}

func (d drifting) GramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	err := d.Space.GramRow(row, r, with)
	for i := range row {
		row[i] *= 1 + 1e-6**d.calls
	}
	*d.calls++
	return err
}

// TestRNAFailures has faulty places: nothing is measured there.
func TestRNAFailures(t *testing.T) {
	off, drifts := aside(t), hostPlace(t)
	off.Space, drifts.Space = wrong{off.Space}, drifting{drifts.Space, new(float64)}
	broken := hostPlace(t)
	broken.Bandwidth = func() (float64, error) { return 0, errors.New("out of order") }
	unknown := hostPlace(t)
	unknown.Free = func() (int64, error) { return 0, errors.New("who knows") }
	little := hostPlace(t)
	little.Free = func() (int64, error) { return 8 * 4 * testDim, nil }
	short := hostPlace(t)
	short.Space, _ = rna.NewHost32(7, 1)
	good := RNAOptions{Places: []*Place{hostPlace(t)}, Windows: []int{3}, Repeats: 1}
	for _, c := range []struct {
		edit func(o *RNAOptions)
		want string
	}{
		{func(o *RNAOptions) { o.Places = append(o.Places, off) }, "card:0: window of 3: the Gram matrix differs from " +
			"that of cpu by 1e-06"},
		{func(o *RNAOptions) { o.Places[0] = drifts }, "differs from the one that grew"},
		{func(o *RNAOptions) { o.Places[0] = broken }, "cpu: out of order"},
		{func(o *RNAOptions) { o.Places[0] = unknown }, "cpu: who knows"},
		{func(o *RNAOptions) { o.Places[0], o.Windows, o.Exactly = little, []int{3, 6}, true }, "a window of 6 residuals " +
			"takes 8 vectors of 30,000 elements, 0.960 MB, and 0.960 MB are free"},
		{func(o *RNAOptions) { o.Places[0], o.Windows = little, []int{6} }, "choose shorter windows"},
		{func(o *RNAOptions) { o.Places = append(o.Places, short) }, "cpu has vectors of 7 elements and cpu of 30000"},
		{func(o *RNAOptions) { o.Places = nil }, "no place"},
		{func(o *RNAOptions) { o.Windows = nil }, "no windows"},
		{func(o *RNAOptions) { o.Windows = []int{5, 2} }, "ascending"},
		{func(o *RNAOptions) { o.Windows = []int{0} }, "window of 0 residuals"},
		{func(o *RNAOptions) { o.Repeats = -1 }, "-1 repeats"},
		{func(o *RNAOptions) { o.Device, o.Net.Model = onCPU, "lenot" }, `"lenet"`},
		{func(o *RNAOptions) { o.Device, o.Net = onCPU, Options{Model: "lenet", Steps: -1} }, "-1 steps"},
		{func(o *RNAOptions) {
			o.Device, o.Net.Model = func() (device.Device, error) { return nil, errors.New("no such device") }, "lenet"
		}, "no such device"},
		{func(o *RNAOptions) {
			o.Device, o.Net.Model = onCPU, "lenet"
			o.Free = func(device.Device) (int64, error) { return 1 << 19, nil }
		}, "even for one image"},
		{func(o *RNAOptions) {
			o.Device, o.Net.Model = onCPU, "lenet"
			o.Free = func(device.Device) (int64, error) { return 0, errors.New("a secret") }
		}, "a secret"},
	} {
		o := good
		o.Places = slices.Clone(good.Places)
		c.edit(&o)
		if _, err := RunRNA(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	o := good
	o.Places, o.Windows = []*Place{little}, []int{3, 4, 6, 7}
	if r, err := RunRNA(t.Context(), o); err != nil || !slices.Equal(r.Places[0].LeftOut, []int{6, 7}) ||
		len(r.Passes) != 4 {
		t.Errorf("what does not fit is left out: %v, %+v", err, r)
	}
	ctx, stop := context.WithCancel(t.Context())
	o = good
	o.Progress = func(done, _ int, _ string) {
		if done == 1 {
			stop()
		}
	}
	if _, err := RunRNA(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

func TestFit(t *testing.T) {
	d, err := onCPU()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o := Options{Model: "lenet"}
	for _, c := range []struct {
		batch int
		free  int64
		want  int
		why   string
	}{
		{0, 0, 32, "does not say"},
		{7, 0, 7, "as asked"},
		{7, 1 << 40, 7, "as asked"},
		{0, 1 << 40, 256, "the paper's"},
		{999, 1 << 20, 0, "a batch of 999 takes "},
		{math.MaxInt, 1 << 20, 0, "a batch of 9223372036854775807 takes "}, // no plan is made
		{0, 1 << 19, 0, "even for one image"},
	} {
		o.Batch = c.batch
		got, why, err := fit(d, o, c.free)
		if err != nil {
			got, why = 0, err.Error()
		}
		if got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("batch %d with %d bytes: %d, %q; want %d, %q", c.batch, c.free, got, why, c.want, c.why)
		}
	}
	// A net whose batch normalisation takes two images needs the memory of two.
	small := Options{Model: "mobilenet_v3_small", ImageSize: 32}
	if _, _, err := fit(d, small, 1<<20); err == nil ||
		!strings.Contains(err.Error(), " even for two images, and 1.05 MB are free") {
		t.Errorf("a net that takes two images at least: %v", err)
	}
	// The chosen batch fits, twice as many images do not.
	o.Batch = 0
	const free = 4 << 20
	batch, why, err := fit(d, o, free)
	if err != nil || batch < 2 || batch >= 256 || batch&(batch-1) != 0 || !strings.Contains(why, "4.19 MB are free") {
		t.Fatalf("batch %d, %q, %v", batch, why, err)
	}
	o.Batch = batch
	if _, _, err := fit(d, o, free); err != nil {
		t.Error(err)
	}
	o.Batch = 2 * batch
	if _, _, err := fit(d, o, free); err == nil {
		t.Errorf("%d images fit, and %d were chosen", o.Batch, batch)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{small(0.00012345), "0.00012"}, {small(3.21), "3.2"}, {small(45.6), "46"}, {small(0), "0"},
		{duration(30), "30.0 s"}, {duration(90), "1.5 min"}, {duration(5400), "1.5 h"}, {duration(1e6), "11.6 days"},
		{seconds(0.25), "250 ms"}, {seconds(2.5), "2.50 s"}, {text.Thousands(1281167), "1,281,167"},
		{text.Thousands(12), "12"},
		{gigabytes(716e6), "716 MB"}, {gigabytes(5.42e9), "5.42 GB"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	var labels []string
	for _, tick := range logTicks(0.04, 12) {
		labels = append(labels, tick.Label)
	}
	if want := []string{"0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10"}; !slices.Equal(labels, want) {
		t.Errorf("marks %q, want %q", labels, want)
	}
	if got := logTicks(0.5, 1e6); len(got) != 7 || got[6].Label != "1000000" {
		t.Errorf("marks %v", got)
	}
}
