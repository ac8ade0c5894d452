package average

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"onlinerna/train/option"
)

// Mode is a way to use RNA.
type Mode string

// The ways to use RNA.
const (
	Off     Mode = "off"
	Offline Mode = "offline" // without affecting training
	Online  Mode = "online"  // training continues from the extrapolated weights
)

// Statistics is a way to obtain BatchNorm statistics for combined weights.
type Statistics string

// The ways to obtain BatchNorm statistics for combined weights.
const (
	Reestimate Statistics = "reestimate" // the mean over training batches
	Combine    Statistics = "combine"    // the snapshots' statistics, combined with c
)

// Momentum determines the optimiser's momentum after an extrapolated point replaces the iterate.
type Momentum string

// The treatments of the momentum.
const (
	Keep  Momentum = "keep"
	Reset Momentum = "reset"
)

// Residual is a source of residuals.
type Residual string

// The sources of residuals.
const (
	Weights   Residual = "weights"   // x − y of successive snapshots
	Gradients Residual = "gradients" // minus the mean gradient over the segment, for the snapshot at its end
)

// Options configures RNA. At most one of Lambda, Tau and Search is set; if none is, Lambda is 1e-9.
type Options struct {
	Mode     Mode       // Off, Offline or Online
	Window   int        // N, the number of residuals: N + 1 snapshots, N with Gradients
	Lambda   *float64   // relative to ‖R‖₂²
	Tau      *float64   // CNA: ‖c‖₂ ≤ (1+τ)/√N
	Search   bool       // choose λ by held-out loss: see [rna.Window.Search]; its iterate is the newest snapshot
	Beta     *float64   // 1 is X c; with Gradients 0, the default then, combines the snapshots, and β is a step size
	Start    int        // epoch of the first snapshot
	Every    int        // epochs between extrapolations
	Stats    Statistics // Reestimate or Combine
	Batches  int        // batches to re-estimate the statistics on
	Momentum Momentum   // Keep or Reset after a point replaced the iterate
	Accept   bool       // online only: accept a point only if the held-out loss does not rise
	// PerEpoch is the number of snapshots per epoch. With SegmentMeans a snapshot is the mean of the weights over the
	// steps since the previous one, not the last weights.
	PerEpoch     int
	SegmentMeans bool
	Residual     Residual // Weights or Gradients
	Averages     []int    // numbers of last snapshots to also average uniformly; empty, not nil, for none
}

// Table lists the options of RNA.
var Table = option.Table[Options]{
	{Name: "rna", Default: "offline", Field: func(r *Options) any { return &r.Mode }, Values: option.OneOf(Off, Offline,
		Online),
		Help: "off, offline: beside training, online: put back (on nets this costs progress: docs/rna-on-nets.md)"},
	{Name: "rna-window", Default: "min(10, max(3, epochs/2)), 5 for small grey images",
		Field: func(r *Options) any { return &r.Window },
		Check: option.Between(1, 100), Help: "residuals N, from N + 1 epochs"},
	{Name: "rna-lambda", Default: "1e-9", Field: func(r *Options) any { return lambdaValue{r} },
		Values: option.OneOf("auto"), Open: true, Clears: []string{"rna-tau"},
		Help: "regularisation, a `number` relative to the squared norm of the residuals; auto: chosen by held-out loss, " +
			"with --holdout"},
	{Name: "rna-tau", Field: func(r *Options) any { return &r.Tau }, Check: option.NotNegative,
		Clears: []string{"rna-lambda"},
		Help:   "bound the norm of the coefficients to (1+tau)/√N instead of regularising (CNA)"},
	{Name: "rna-beta", Default: "1, with gradients 0", Field: func(r *Options) any { return &r.Beta },
		Help: "mixing: 1 combines the snapshots, 0 those before them; with gradients 0 combines the snapshots"},
	{Name: "rna-start", Default: "2", Field: func(r *Options) any { return &r.Start }, Check: option.AtLeast(1),
		Help: "first epoch whose weights are used"},
	{Name: "rna-per-epoch", Default: "1", Field: func(r *Options) any { return &r.PerEpoch }, Check: option.AtLeast(1),
		Help: "snapshots an epoch; the window and --averages count them"},
	{Name: "rna-segment-means", Field: func(r *Options) any { return &r.SegmentMeans },
		Help: "snapshots are the mean of the weights since the one before, not the weights"},
	{Name: "rna-residual", Default: "weights", Field: func(r *Options) any { return &r.Residual },
		Values: option.OneOf(Weights, Gradients),
		Help:   "weights: differences of snapshots, or gradients: their mean since the snapshot before"},
	{Name: "rna-every", Default: "1", Field: func(r *Options) any { return &r.Every }, Check: option.AtLeast(1),
		Help: "epochs from one extrapolation to the next"},
	{Name: "rna-bn", Default: "reestimate", Field: func(r *Options) any { return &r.Stats },
		Values: option.OneOf(Reestimate, Combine),
		Help: "BatchNorm statistics of combined weights: reestimate on training batches, or combine those " +
			"of the snapshots"},
	{Name: "rna-bn-batches", Default: "20", Field: func(r *Options) any { return &r.Batches }, Check: option.AtLeast(1),
		Help: "batches to re-estimate on"},
	{Name: "rna-momentum", Default: "reset", Field: func(r *Options) any { return &r.Momentum }, Values: option.OneOf(Keep,
		Reset),
		Help: "momentum when weights are put back: reset or keep"},
	{Name: "rna-accept", Field: func(r *Options) any { return &r.Accept },
		Help: "put weights back only if the held-out loss does not rise, with --holdout"},
	{Name: "averages", Default: "by the data", Field: func(r *Options) any { return &r.Averages }, Check: option.Between(2,
		100),
		Help: "plain averages of this many last epochs to show beside RNA"},
}

// Resolve fills in zero fields for a run of that many epochs. window and averages are the defaults for its data, zero
// and nil for defaults by the number of epochs.
func (r *Options) Resolve(epochs, window int, averages []int) {
	option.Default(&r.Mode, Offline)
	option.Default(&r.Window, window)
	option.Default(&r.Window, min(10, max(3, epochs/2)))
	if r.Tau == nil && !r.Search {
		option.DefaultPointer(&r.Lambda, 1e-9)
	}
	option.Default(&r.PerEpoch, 1)
	option.Default(&r.Residual, Weights)
	if r.Residual == Gradients {
		option.DefaultPointer(&r.Beta, 0)
	}
	option.DefaultPointer(&r.Beta, 1)
	option.Default(&r.Start, 2)
	option.Default(&r.Every, 1)
	option.Default(&r.Stats, Reestimate)
	option.Default(&r.Batches, 20)
	option.Default(&r.Momentum, Reset)
	if r.Averages == nil {
		r.Averages = averages
		if r.Averages == nil {
			r.Averages = []int{r.Window}
		}
	}
}

// Check finds options that exclude each other. holdout reports whether a part of the training set is held out.
func (r *Options) Check(holdout bool) error {
	switch {
	case r.Tau != nil && (r.Lambda != nil || r.Search):
		return fmt.Errorf("rna-tau and rna-lambda exclude each other: give one of them")
	case r.Search && r.Lambda != nil:
		return fmt.Errorf("rna-lambda %g and a search for one exclude each other", *r.Lambda)
	case r.Search && !holdout:
		return fmt.Errorf("rna-lambda auto goes by the loss on held-out images: hold out a part of the training set, as " +
			"--holdout 0.05")
	case r.Search && r.Stats != Reestimate:
		return fmt.Errorf("rna-lambda auto needs BatchNorm statistics of each candidate: use rna-bn %s", Reestimate)
	case r.Accept && r.Mode != Online:
		return fmt.Errorf("rna-accept is about points that are put back: use it with rna %s", Online)
	case r.Accept && !holdout:
		return fmt.Errorf("rna-accept goes by the loss on held-out images: hold out a part of the training set, as " +
			"--holdout 0.05")
	}
	return nil
}

// Rule describes the regularisation of the coefficients in words.
func (r *Options) Rule() string {
	switch {
	case r.Search:
		return "lambda by held-out loss"
	case r.Tau != nil:
		return fmt.Sprintf("tau %g", *r.Tau)
	case r.Lambda != nil:
		return fmt.Sprintf("lambda %g", *r.Lambda)
	}
	return "lambda 1e-09"
}

// FirstExtrapolation returns the first epoch at whose end there are two residuals.
func (r *Options) FirstExtrapolation() int {
	snapshots := 3
	if r.Residual == Gradients {
		snapshots = 2
	}
	return r.Start - 1 + (snapshots+r.PerEpoch-1)/r.PerEpoch
}

// Capacity returns the number of residuals that the hook's window must hold: RNA uses the newest Window of them, and an
// average of k iterates needs k snapshots.
func (r *Options) Capacity() int {
	n := r.Window
	for _, k := range r.Averages {
		n = max(n, k)
	}
	return n
}

// lambdaValue is RNA's λ: a number, or auto for a search.
type lambdaValue struct{ r *Options }

func (v lambdaValue) Set(text string) error {
	if text == "auto" {
		v.r.Lambda, v.r.Search = nil, true
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("want a number or auto")
	}
	v.r.Lambda, v.r.Search = &x, false
	return v.Check()
}

func (v lambdaValue) Check() error {
	if x := v.r.Lambda; x != nil && (!(*x >= 0) || math.IsInf(*x, 0)) {
		return errors.New("must be finite and not negative")
	}
	return nil
}

func (v lambdaValue) String() string {
	switch {
	case v.r.Search:
		return "auto"
	case v.r.Lambda == nil:
		return ""
	}
	return fmt.Sprint(*v.r.Lambda)
}

func (v lambdaValue) Unset() { v.r.Lambda, v.r.Search = nil, false }
