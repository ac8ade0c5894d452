package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"runtime"
	"strconv"

	"onlinerna/nn/device"
)

// imageNet is the number of training images of ImageNet.
const imageNet = 1_281_167

// RNAResult is a measurement of RNA.
type RNAResult struct {
	Dim       int     `json:"dim"`       // elements of a vector, float32
	Software  string  `json:"software"`  // the Go version
	Processor string  `json:"processor"` // with the operating system
	Load      float64 `json:"load,omitempty"`
	NoGPU     string  `json:"no_gpu,omitempty"` // reason for the missing GPU

	Places []RNAPlace `json:"places"`
	Net    *NetSpeed  `json:"net,omitempty"` // nil if only RNA was measured
	Passes []RNAPass  `json:"passes"`        // by place, then N
}

// RNAPlace describes a place of windows.
type RNAPlace struct {
	Name      string  `json:"name"`
	Device    string  `json:"device"`
	Threads   int     `json:"threads,omitempty"`
	Bandwidth float64 `json:"gb_per_s"` // memory bandwidth: reading on the host, copying on a GPU

	LeftOut []int `json:"left_out,omitempty"` // windows too large for the memory
	Free    int64 `json:"free_bytes,omitempty"`
}

// NetSpeed is the time of a network for a batch.
type NetSpeed struct {
	Model     string `json:"model"`
	Batch     int    `json:"batch"`
	Why       string `json:"batch_why"` // reason for the batch
	ImageSize int    `json:"image_size"`
	Channels  int    `json:"channels"`

	Device  string `json:"device"`
	Level   string `json:"level,omitempty"`
	Threads int    `json:"threads,omitempty"`

	Seconds Spread  `json:"seconds"`      // forward and backward
	Step    Spread  `json:"step_seconds"` // with SGD's update
	Steps   int     `json:"steps"`
	Images  float64 `json:"images_per_s"` // batch / Step.Median
	Epoch   float64 `json:"epoch_s"`      // ImageNet's images at this speed
}

// RNAPass is a pass of RNA with a window of N residuals.
type RNAPass struct {
	Place string `json:"place"`
	Pass  string `json:"pass"` // FullPass and so on
	N     int    `json:"n"`

	Seconds Spread  `json:"seconds"`
	Repeats int     `json:"repeats"`
	Gram    float64 `json:"gram_s"` // medians of the parts; in an online pass the push
	Solve   float64 `json:"solve_s"`
	Combine float64 `json:"combine_s"`

	Held int64 `json:"held_bytes"` // by the window's vectors, on one rank

	// GB is the minimum traffic: each part reads every vector that it needs once, and writes its result once.
	GB          float64 `json:"gb"`
	GBS         float64 `json:"gb_per_s"`     // GB / Seconds.Median
	OfBandwidth float64 `json:"of_bandwidth"` // GBS / RNAPlace.Bandwidth

	// Readings is Seconds.Median over the time in which the place reads the window, N + 1 vectors, once.
	Readings float64 `json:"readings"`

	OfNet   float64 `json:"of_forward_backward,omitempty"` // Seconds.Median over NetSpeed.Seconds.Median
	OfEpoch float64 `json:"of_epoch,omitempty"`            // Seconds.Median over NetSpeed.Epoch
}

func newRNAResult(dim int, o RNAOptions) *RNAResult {
	return &RNAResult{Dim: dim, Software: runtime.Version(), Processor: processor(), NoGPU: o.NoGPU}
}

// set sets the times from the steps of a network.
func (s *NetSpeed) set(b *bench) {
	c := b.net.Model().Config
	s.Model, s.Batch, s.ImageSize, s.Channels = b.Model, b.Batch, c.Size, c.Channels
	s.Device = b.net.Device.Name()
	if d, ok := device.As[device.Processor](b.net.Device); ok {
		s.Level, s.Threads = d.Level(), d.Threads()
	}
	sgd := b.profile.Seconds(b.optimizer.Name())
	both := make([]float64, len(sgd))
	for i := range both {
		both[i] = b.profile.Steps[i] - sgd[i]
	}
	s.Seconds, s.Step, s.Steps = spread(both), spread(b.profile.Steps), len(both)
	s.Images = float64(s.Batch) / s.Step.Median
	s.Epoch = imageNet / s.Images
}

func newRNAPass(p *Place, name string, n int, times []timing) RNAPass {
	r := RNAPass{Place: p.Name, Pass: name, N: n, Repeats: len(times)}
	var all, gram, solve, combine []float64
	for _, t := range times {
		all, gram = append(all, t.all.Seconds()), append(gram, t.gram.Seconds())
		solve, combine = append(solve, t.solve.Seconds()), append(combine, t.combine.Seconds())
	}
	r.Seconds = spread(all)
	r.Gram, r.Solve, r.Combine = spread(gram).Median, spread(solve).Median, spread(combine).Median
	vectors := (n + 1) + (n + 1) // Gram reads N + 1; a combination reads N and writes one
	if name != FullPass {
		vectors += 3 // a push reads twice, to check and to copy, and writes once
	}
	r.Held = p.held(n)
	r.GB = 4e-9 * float64(vectors) * float64(p.part())
	r.GBS = r.GB / r.Seconds.Median
	return r
}

// compare computes the ratios, which need all measurements.
func (r *RNAResult) compare() {
	r.Load = loadAverage()
	speeds := map[string]float64{}
	for _, p := range r.Places {
		speeds[p.Name] = p.Bandwidth
	}
	for i := range r.Passes {
		p := &r.Passes[i]
		p.OfBandwidth = p.GBS / speeds[p.Place]
		p.Readings = p.Seconds.Median * speeds[p.Place] / (1e-9 * float64(p.Held))
		if r.Net != nil {
			p.OfNet, p.OfEpoch = p.Seconds.Median/r.Net.Seconds.Median, p.Seconds.Median/r.Net.Epoch
		}
	}
}

// WriteCSV writes a line for each pass, and one for the forward and backward pass. Times are in seconds.
func (r *RNAResult) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{ // errors stay until Flush
		"place", "pass", "n", "batch", "dim", "repeats", "median_s", "min_s", "q1_s", "q3_s", "max_s", "gram_s", "solve_s",
		"combine_s",
		"gb", "gb_per_s", "bandwidth_gb_per_s", "of_bandwidth", "readings", "of_forward_backward", "of_epoch",
	})
	cell := func(x float64) string {
		if x == 0 {
			return ""
		}
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	line := func(first []string, cells ...float64) {
		for _, x := range cells {
			first = append(first, cell(x))
		}
		_ = c.Write(first)
	}
	if n := r.Net; n != nil {
		s := n.Seconds
		line([]string{n.Device, "forward+backward", "", fmt.Sprint(n.Batch), fmt.Sprint(r.Dim), fmt.Sprint(n.Steps)},
			s.Median, s.Min, s.Q1, s.Q3, s.Max, 0, 0, 0, 0, 0, 0, 0, 0, 1, s.Median/n.Epoch)
	}
	for _, p := range r.Passes {
		s := p.Seconds
		line([]string{p.Place, p.Pass, fmt.Sprint(p.N), "", fmt.Sprint(r.Dim), fmt.Sprint(p.Repeats)},
			s.Median, s.Min, s.Q1, s.Q3, s.Max, p.Gram, p.Solve, p.Combine,
			p.GB, p.GBS, r.place(p.Place).Bandwidth, p.OfBandwidth, p.Readings, p.OfNet, p.OfEpoch)
	}
	c.Flush()
	return c.Error()
}

func (r *RNAResult) place(name string) RNAPlace {
	for _, p := range r.Places {
		if p.Name == name {
			return p
		}
	}
	return RNAPlace{}
}
