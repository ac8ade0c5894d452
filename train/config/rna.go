package config

import (
	"fmt"
	"math"
)

// Mode is a way to use RNA.
type Mode string

// The ways to use RNA.
const (
	Off     Mode = "off"
	Offline Mode = "offline" // beside training, which it leaves alone
	Online  Mode = "online"  // the extrapolated weights are put back
)

// Statistics is a way to give BatchNorm statistics to combined weights.
type Statistics string

// The ways to give BatchNorm statistics to combined weights.
const (
	Reestimate Statistics = "reestimate" // the mean over training batches
	Combine    Statistics = "combine"    // the snapshots' statistics, combined with c
)

// Momentum is what happens to the optimiser's momentum when an extrapolated point replaces the iterate.
type Momentum string

// What happens to the optimiser's momentum when an extrapolated point replaces the iterate.
const (
	Keep  Momentum = "keep"
	Reset Momentum = "reset"
)

// Residual is where residuals come from.
type Residual string

// Where residuals come from.
const (
	Weights   Residual = "weights"   // x − y of successive snapshots
	Gradients Residual = "gradients" // minus the mean gradient over the segment, for the snapshot at its end
)

// RNA configures the RNA hook. Of Lambda, Tau and Search one is set at most; when none is, Lambda is 1e-9.
type RNA struct {
	Mode     Mode       `json:"mode"`             // Off, Offline or Online
	Window   int        `json:"window"`           // N, residuals: N + 1 snapshots, N with Gradients
	Lambda   *float64   `json:"lambda,omitempty"` // relative to ‖R‖₂²
	Tau      *float64   `json:"tau,omitempty"`    // CNA: ‖c‖₂ ≤ (1+τ)/√N
	Search   bool       `json:"search,omitempty"` // choose λ by held-out loss: see [rna.Window.Search]; its iterate is the newest snapshot
	Beta     *float64   `json:"beta"`             // 1 is X c; with Gradients 0, the default then, combines the snapshots, and β is a step size
	Start    int        `json:"start"`            // epoch in which the first snapshot is taken
	Every    int        `json:"every"`            // epochs from extrapolation to extrapolation
	Stats    Statistics `json:"bn"`               // Reestimate or Combine
	Batches  int        `json:"bn_batches"`       // that the statistics are re-estimated on
	Momentum Momentum   `json:"momentum"`         // Keep or Reset at injection
	Accept   bool       `json:"accept,omitempty"` // online, only if the held-out loss does not rise
	// PerEpoch is the number of snapshots an epoch. With SegmentMeans they are the mean of the weights over the steps
	// since the one before, not the last.
	PerEpoch     int      `json:"per_epoch,omitempty"`
	SegmentMeans bool     `json:"segment_means,omitempty"`
	Residual     Residual `json:"residual,omitempty"` // Weights or Gradients
	Averages     []int    `json:"averages"`           // numbers of last snapshots whose average is shown beside; empty, not nil, for none
}

func (r *RNA) resolve(epochs int, p preset) {
	def(&r.Mode, Offline)
	def(&r.Window, p.window)
	def(&r.Window, min(10, max(3, epochs/2)))
	if r.Tau == nil && !r.Search {
		defPtr(&r.Lambda, 1e-9)
	}
	def(&r.PerEpoch, 1)
	def(&r.Residual, Weights)
	if r.Residual == Gradients {
		defPtr(&r.Beta, 0)
	}
	defPtr(&r.Beta, 1)
	def(&r.Start, 2)
	def(&r.Every, 1)
	def(&r.Stats, Reestimate)
	def(&r.Batches, 20)
	def(&r.Momentum, Reset)
	if r.Averages == nil {
		r.Averages = p.averages
		if r.Averages == nil {
			r.Averages = []int{r.Window}
		}
	}
}

// check takes whether a part of the training set is held out.
func (r *RNA) check(holdout bool) error {
	switch {
	case r.Mode != Off && r.Mode != Offline && r.Mode != Online:
		return fmt.Errorf("unknown rna mode %q: use %s, %s or %s", r.Mode, Off, Offline, Online)
	case r.Window < 1 || r.Window > 100:
		return fmt.Errorf("rna window %d: must lie between 1 and 100 residuals", r.Window)
	case r.Lambda != nil && (!(*r.Lambda >= 0) || math.IsInf(*r.Lambda, 0)):
		return fmt.Errorf("rna lambda %g: must be finite and not negative", *r.Lambda)
	case r.Tau != nil && (!(*r.Tau >= 0) || math.IsInf(*r.Tau, 0)):
		return fmt.Errorf("rna tau %g: must be finite and not negative", *r.Tau)
	case r.Tau != nil && (r.Lambda != nil || r.Search):
		return fmt.Errorf("rna tau and rna lambda exclude each other: give one of them")
	case r.Search && r.Lambda != nil:
		return fmt.Errorf("rna lambda %g and a search for one exclude each other", *r.Lambda)
	case r.Search && !holdout:
		return fmt.Errorf("rna lambda auto goes by the loss on held-out images: hold out a part of the training set (--holdout 0.05, say)")
	case r.Search && r.Stats != Reestimate:
		return fmt.Errorf("rna lambda auto needs BatchNorm statistics of each candidate: use rna bn %s", Reestimate)
	case math.IsNaN(*r.Beta) || math.IsInf(*r.Beta, 0):
		return fmt.Errorf("rna beta %g: must be finite", *r.Beta)
	case r.Start < 1 || r.Every < 1:
		return fmt.Errorf("rna start %d and every %d: at least 1", r.Start, r.Every)
	case r.PerEpoch < 1:
		return fmt.Errorf("rna snapshots per epoch %d: at least 1", r.PerEpoch)
	case r.Residual != Weights && r.Residual != Gradients:
		return fmt.Errorf("unknown rna residual %q: use %s or %s", r.Residual, Weights, Gradients)
	case r.Stats != Reestimate && r.Stats != Combine:
		return fmt.Errorf("unknown way of BatchNorm statistics %q: use %s or %s", r.Stats, Reestimate, Combine)
	case r.Batches < 1:
		return fmt.Errorf("rna statistics on %d batches: at least 1", r.Batches)
	case r.Momentum != Keep && r.Momentum != Reset:
		return fmt.Errorf("unknown rna momentum %q: use %s or %s", r.Momentum, Keep, Reset)
	case r.Accept && r.Mode != Online:
		return fmt.Errorf("rna accept is about points that are put back: use it with rna %s", Online)
	case r.Accept && !holdout:
		return fmt.Errorf("rna accept goes by the loss on held-out images: hold out a part of the training set (--holdout 0.05, say)")
	}
	for _, k := range r.Averages {
		if k < 2 || k > 100 {
			return fmt.Errorf("average over %d iterates: must lie between 2 and 100", k)
		}
	}
	return nil
}

// Rule says in words what regularises the coefficients.
func (r *RNA) Rule() string {
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

// FirstExtrapolation is the epoch at whose end there are two residuals.
func (r *RNA) FirstExtrapolation() int {
	snapshots := 3
	if r.Residual == Gradients {
		snapshots = 2
	}
	return r.Start - 1 + (snapshots+r.PerEpoch-1)/r.PerEpoch
}

// Capacity is the number of residuals that the hook's window must hold: RNA uses the newest Window of
// them, and an average of k iterates needs k snapshots.
func (r *RNA) Capacity() int {
	n := r.Window
	for _, k := range r.Averages {
		n = max(n, k)
	}
	return n
}
