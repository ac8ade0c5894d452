package bench

import (
	"fmt"
	"runtime"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/train/profile"
)

// Result is a measurement. In JSON its fields have the names that scripts/bench_pytorch.py uses.
type Result struct {
	Model      string `json:"model"`
	Mode       string `json:"mode"` // "training" or "evaluation"
	Optimizer  string `json:"optimizer,omitempty"`
	Batch      int    `json:"batch"`
	Fit        string `json:"fit,omitempty"` // reason for the batch, if the memory decided
	ImageSize  int    `json:"image_size"`
	Channels   int    `json:"channels"`
	Parameters int    `json:"parameters"`
	Frozen     int    `json:"frozen_parameters,omitempty"` // of Parameters, not trained

	Software  string  `json:"software"` // the Go version
	Device    string  `json:"device"`
	Level     string  `json:"level,omitempty"`     // instruction set, such as "avx512"
	Threads   int     `json:"threads,omitempty"`   // computing threads
	Card      string  `json:"card,omitempty"`      // the GPU
	Precision string  `json:"precision,omitempty"` // of factors and activations
	LowMemory bool    `json:"low_memory,omitempty"`
	Float32   string  `json:"float32,omitempty"`  // bf16x6 or bf16x3: products of float32 in parts if that is faster
	Winograd  bool    `json:"winograd,omitempty"` // Winograd's algorithm for 3×3 convolutions if that is faster
	Processor string  `json:"processor"`          // with the operating system
	Load      float64 `json:"load,omitempty"`     // average of the last minute at the end, if the system reports it

	Input  string    `json:"input"` // of the following steps
	Warmup int       `json:"warmup"`
	Steps  []float64 `json:"steps"` // seconds of each

	Seconds Spread  `json:"seconds"`          // per step
	Images  Spread  `json:"images_per_s"`     // batch / seconds
	GFLOP   float64 `json:"gflop"`            // per step: the products of convolutions and linear layers
	GFLOPS  Spread  `json:"gflop_per_s"`      // gflop / seconds
	Usage   Usage   `json:"usage"`            // per step, on average
	Memory  int64   `json:"peak_rss_bytes"`   // of the process; 0 if the system does not report it
	Peak    float64 `json:"peak_gflop_per_s"` // multiply-adds on registers; 0 if not measured
	Triad   float64 `json:"triad_gb_per_s"`   // v ← v + a·x, or a copy on a device that measures itself

	DeviceMemory int64   `json:"device_peak_bytes,omitempty"` // peak allocation in a device's own memory
	Limits       []Limit `json:"limits,omitempty"`            // measured by the device itself
	// of the card during the measurement
	CardState *device.CardState `json:"card_state,omitempty"`

	Inputs []InputSpeed `json:"inputs"` // all measured inputs, Input first

	Layout  string `json:"layout,omitempty"`  // PyTorch's memory layout of activations
	Compile string `json:"compile,omitempty"` // PyTorch's compile mode; none if it did not compile

	// steps in which the kinds were timed: Steps, or others that a device timed itself
	KindSteps int    `json:"kind_steps"`
	Products  Kind   `json:"products"` // all kinds that have products
	Kinds     []Kind `json:"kinds"`    // the slowest first
}

// Limit is a speed that bounds kernels.
type Limit struct {
	Name  string  `json:"name"` // the precision of products, or copy
	Speed float64 `json:"speed"`
	Unit  string  `json:"unit"` // GFLOP/s or GB/s
	How   string  `json:"how"`
}

// InputSpeed holds the times of steps with an input.
type InputSpeed struct {
	Input   string    `json:"input"` // Synthetic, InMemory or FromLoader
	Steps   []float64 `json:"steps"` // seconds of each
	Seconds Spread    `json:"seconds"`
	Images  Spread    `json:"images_per_s"`
	Waited  float64   `json:"waited"` // share of the time spent waiting for a batch
}

func newInputSpeed(input string, batch int, steps, waits []float64) *InputSpeed {
	s := &InputSpeed{Input: input, Steps: steps, Seconds: spread(steps), Waited: sum(waits) / sum(steps)}
	s.Images = s.Seconds.per(float64(batch))
	return s
}

// Spread describes numbers by their quartiles, interpolated linearly.
type Spread struct {
	Min    float64 `json:"min"`
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
	Max    float64 `json:"max"`
}

// Kind is the cost per step of the groups with the same ops.
type Kind = profile.Kind

// spread returns the spread of a non-empty list.
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

// per returns the spread of x/v for the values v that s describes.
func (s Spread) per(x float64) Spread {
	return Spread{x / s.Max, x / s.Q3, x / s.Median, x / s.Q1, x / s.Min}
}

// set sums up the measured steps.
func (r *Result) set(b *bench, l limits) {
	c := b.net.Model().Config
	r.Model, r.Mode, r.Batch, r.ImageSize, r.Channels, r.Parameters = b.Model, "training", b.Batch, c.Size, c.Channels,
		b.net.Params.Len()
	r.Software, r.Device, r.Processor, r.Load = runtime.Version(), b.net.Device.Name(), processor(), loadAverage()
	first := r.Inputs[0]
	r.LowMemory = b.LowMemory && !b.Eval
	for _, p := range b.net.Model().Params {
		if p.Frozen {
			r.Frozen += p.Shape.Size()
		}
	}
	r.Input, r.Warmup, r.Steps, r.Seconds, r.Images = first.Input, b.Warmup, first.Steps, first.Seconds, first.Images
	r.Peak, r.Triad = l.peak/1e9, l.triad/1e9
	for _, p := range l.gauged.Products {
		r.Limits = append(r.Limits, Limit{p.Name, p.Speed / 1e9, "GFLOP/s", p.How})
	}
	if p := l.gauged.Bandwidth; p.Speed > 0 {
		r.Limits = append(r.Limits, Limit{p.Name, p.Speed / 1e9, "GB/s", p.How})
	}
	if b.found != nil {
		r.Fit = b.found.String()
	}
	if b.Eval {
		r.Mode = "evaluation"
	} else {
		r.Optimizer = b.optimizer.Name()
	}
	r.describe(b.net.Device)
	r.KindSteps = len(b.main.Steps)
	r.Kinds, r.Products = b.main.Sum(l.peak, l.triad)
	r.GFLOP = r.Products.GFLOP
	r.GFLOPS = r.Seconds.per(r.GFLOP)
}

// describe asks a device for its description.
func (r *Result) describe(dev device.Device) {
	if d, ok := device.As[device.Processor](dev); ok {
		r.Level, r.Threads, r.Winograd = d.Level(), d.Threads(), d.Winograd()
		if way := d.Float32(); way != "direct" {
			r.Float32 = way
		}
	}
	if d, ok := device.As[device.Card](dev); ok {
		r.Card = d.Card()
	}
	if d, ok := device.As[device.Precise](dev); ok {
		r.Precision = d.Precision()
	}
	if len(r.Limits) > 0 {
		r.Precision = r.Limits[0].Name
	}
	r.Winograd = r.Winograd && r.Precision == "float32"
	if d, ok := device.As[device.OwnMemory](dev); ok {
		r.DeviceMemory, _ = d.PeakMemory() // of a device that has just worked
	}
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}

// work returns the mode, with the optimiser unless it is SGD, and the number of frozen parameters.
func (r *Result) work() string {
	work := r.Mode
	if r.Optimizer != "" && r.Optimizer != "sgd" {
		work += " with " + r.Optimizer
	}
	if r.Frozen > 0 {
		work += fmt.Sprintf(", %d parameters frozen", r.Frozen)
	}
	return work
}
