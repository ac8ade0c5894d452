package bench

import (
	"cmp"
	"encoding/json"
	"io"
	"runtime"
	"slices"
)

// Result is a measurement. In JSON its fields have the names that scripts/bench_pytorch.py uses.
type Result struct {
	Model      string `json:"model"`
	Mode       string `json:"mode"` // "training" or "evaluation"
	Batch      int    `json:"batch"`
	Fit        string `json:"fit,omitempty"` // why it is that one, where the memory decided
	ImageSize  int    `json:"image_size"`
	Channels   int    `json:"channels"`
	Parameters int    `json:"parameters"`

	Software  string  `json:"software"` // the Go version
	Device    string  `json:"device"`
	Level     string  `json:"level,omitempty"`    // instructions, as "avx512"
	Threads   int     `json:"threads,omitempty"`  // that compute
	Winograd  bool    `json:"winograd,omitempty"` // 3×3 convolutions by Winograd's algorithm where that is faster
	Processor string  `json:"processor"`          // with the operating system
	Load      float64 `json:"load,omitempty"`     // average of the last minute at the end, where the system says it

	Warmup int       `json:"warmup"`
	Steps  []float64 `json:"steps"` // seconds of each

	Seconds Spread  `json:"seconds"`          // a step
	Images  Spread  `json:"images_per_s"`     // batch / seconds
	GFLOP   float64 `json:"gflop"`            // a step: the products of convolutions and linear layers
	GFLOPS  Spread  `json:"gflop_per_s"`      // gflop / seconds
	Usage   Usage   `json:"usage"`            // a step, on average
	Memory  int64   `json:"peak_rss_bytes"`   // of the process; 0 where the system does not say
	Peak    float64 `json:"peak_gflop_per_s"` // multiply-adds on registers; 0 where not measured
	Triad   float64 `json:"triad_gb_per_s"`   // v ← v + a·x

	Products Kind   `json:"products"` // all kinds that have products
	Kinds    []Kind `json:"kinds"`    // by time, the longest first
}

// Spread describes numbers by their quartiles, interpolated linearly.
type Spread struct {
	Min    float64 `json:"min"`
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
	Max    float64 `json:"max"`
}

// Kind is what the groups with the same ops cost in a step.
type Kind struct {
	Name    string  `json:"name"` // of the ops, as "batch_norm + relu"
	Calls   int     `json:"calls"`
	Seconds float64 `json:"seconds"` // median of the steps
	Share   float64 `json:"share"`   // of the time of all steps

	GFLOP  float64 `json:"gflop,omitempty"`
	GFLOPS float64 `json:"gflop_per_s,omitempty"` // GFLOP / Seconds
	OfPeak float64 `json:"of_peak,omitempty"`     // GFLOPS / Result.Peak

	// GB is what has to be moved at least: each input of a group is read once, each output written once.
	GB      float64 `json:"gb,omitempty"`
	GBS     float64 `json:"gb_per_s,omitempty"` // GB / Seconds
	OfTriad float64 `json:"of_triad,omitempty"` // GBS / Result.Triad
}

// WriteJSON writes r, indented.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// spread is that of a list that is not empty.
func spread(list []float64) Spread {
	s := slices.Sorted(slices.Values(list))
	at := func(q float64) float64 {
		x := q * float64(len(s)-1)
		i := int(x)
		j := min(i+1, len(s)-1)
		return s[i] + (x-float64(i))*(s[j]-s[i])
	}
	return Spread{s[0], at(0.25), at(0.5), at(0.75), s[len(s)-1]}
}

// per is the spread of x/v for the values v that s describes.
func (s Spread) per(x float64) Spread {
	return Spread{x / s.Max, x / s.Q3, x / s.Median, x / s.Q1, x / s.Min}
}

// result sums up the measured steps.
func (b *bench) result(l limits) *Result {
	c := b.net.Model().Config
	r := &Result{
		Model: b.Model, Mode: "training", Batch: b.Batch, ImageSize: c.Size, Channels: c.Channels, Parameters: b.net.Params.Len(),
		Software: runtime.Version(), Device: b.net.Device.Name(), Processor: processor(), Load: loadAverage(),
		Warmup: b.Warmup, Steps: b.profile.steps, Seconds: spread(b.profile.steps),
		Peak: l.peak / 1e9, Triad: l.triad / 1e9,
	}
	if b.found != nil {
		r.Fit = b.found.String()
	}
	if b.Eval {
		r.Mode = "evaluation"
	}
	if d, ok := b.net.Device.(interface{ Level() string }); ok {
		r.Level = d.Level()
	}
	if d, ok := b.net.Device.(interface{ Threads() int }); ok {
		r.Threads = d.Threads()
	}
	if d, ok := b.net.Device.(interface{ Winograd() bool }); ok {
		r.Winograd = d.Winograd()
	}
	total := sum(r.Steps)
	var products tally
	seconds := make([]float64, len(r.Steps)) // of products
	for _, k := range b.profile.kinds {
		r.Kinds = append(r.Kinds, r.kind(k.name, k.last, k.seconds, total))
		if k.last.flops == 0 {
			continue
		}
		products.calls += k.last.calls
		products.flops += k.last.flops
		for i, s := range k.seconds {
			seconds[i] += s
		}
	}
	slices.SortStableFunc(r.Kinds, func(a, b Kind) int { return cmp.Compare(b.Share, a.Share) })
	r.Products = r.kind("all products", products, seconds, total)
	r.GFLOP = r.Products.GFLOP
	r.Images = r.Seconds.per(float64(b.Batch))
	r.GFLOPS = r.Seconds.per(r.GFLOP)
	return r
}

func (r *Result) kind(name string, t tally, seconds []float64, total float64) Kind {
	k := Kind{Name: name, Calls: t.calls, Seconds: spread(seconds).Median, Share: sum(seconds) / total, GFLOP: float64(t.flops) / 1e9, GB: float64(t.bytes) / 1e9}
	if k.Seconds > 0 {
		k.GFLOPS, k.GBS = k.GFLOP/k.Seconds, k.GB/k.Seconds
	}
	if r.Peak > 0 {
		k.OfPeak = k.GFLOPS / r.Peak
	}
	if r.Triad > 0 {
		k.OfTriad = k.GBS / r.Triad
	}
	return k
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}
