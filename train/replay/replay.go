package replay

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/rna"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/merge"
	"onlinerna/train/network"
)

// Stats is the source of the points' BatchNorm statistics.
type Stats string

// The sources of the points' BatchNorm statistics.
const (
	Last       Stats = "last"       // of the newest snapshot
	Combine    Stats = "combine"    // combined like weights; a negative variance becomes 0
	Reestimate Stats = "reestimate" // the mean over training batches, the same ones as in training
)

// Lambda is a rule for λ: a value, relative to ‖R‖₂², or the search by held-out loss.
type Lambda struct {
	Value float64
	Auto  bool
}

// Options are the curves to compute. Nil lists are empty, except Lambdas and Betas.
type Options struct {
	Windows  []int           // numbers of residuals N: N + 1 snapshots
	Lambdas  []Lambda        // for each window; nil: 1e-9
	Betas    []float64       // for each λ; nil: 1
	Averages []int           // numbers of last snapshots
	Decays   []float64       // of moving averages x ← d·x + (1−d)·w over the snapshots, from the first on
	Profiles []merge.Profile // to make of the power EMAs that the run kept
	Stats    Stats           // empty: as in the run's training

	// Keep, if set, is a folder for the weights of all curves in the last epoch.
	Keep string

	// Progress, if set, is called before each epoch.
	Progress func(epoch, done, of int)
}

// Point is a curve's value in an epoch.
type Point struct {
	Epoch int            `json:"epoch"`
	Val   *network.Score `json:"val,omitempty"`  // on the validation images
	Held  *network.Score `json:"held,omitempty"` // on the held-out images

	C      []float64 `json:"c,omitempty"` // coefficients of RNA, oldest first
	NormC  float64   `json:"c_norm,omitempty"`
	Lambda *float64  `json:"lambda,omitempty"` // as used; nil for λ = ∞ and if nothing was solved
	Choice string    `json:"choice,omitempty"` // of a search: kept, averaged or extrapolated
	Status string    `json:"status,omitempty"` // reason for a missing score
	Fit    *float64  `json:"fit,omitempty"`    // distance of a profile from the wanted one, relative to its norm
}

// Curve is one kind of weights over the epochs.
type Curve struct {
	Name    string       `json:"name"`
	Kind    network.Kind `json:"kind"`
	Window  int          `json:"window,omitempty"` // for RNA
	Rule    *Lambda      `json:"-"`
	Lambda  string       `json:"lambda,omitempty"` // the rule in words: a number, inf or auto
	Beta    *float64     `json:"beta,omitempty"`
	Last    int          `json:"snapshots,omitempty"` // for an average
	Decay   float64      `json:"decay,omitempty"`     // for a moving average
	Gamma   float64      `json:"gamma,omitempty"`     // for a power EMA
	WSM     string       `json:"wsm,omitempty"`       // for a decay, as linear:3
	Points  []Point      `json:"points"`
	profile *merge.Profile
	File    string `json:"file,omitempty"` // in Options.Keep
}

// Result holds all curves. The first is the iterate; if points have re-estimated statistics, the second is the iterate
// with such statistics.
type Result struct {
	Run    string   `json:"run"`
	Data   string   `json:"data"`
	Stats  Stats    `json:"bn,omitempty"` // empty for a net without BatchNorm
	Epochs []int    `json:"epochs"`       // of the snapshots
	Curves []*Curve `json:"curves"`
}

// Replay replays the snapshots of a run. Close it after use.
type Replay struct {
	Dir    string
	Config train.Spec // the run's, changed by Open's adjust
	Run    *train.Run // evaluates the points

	epochs []int
	files  []string
}

// Open opens the run in a folder on a device, with the images that the run was given, if any. adjust, if not nil, may
// change the location of the data, limits on batches, workers and threads.
func Open(dir string, deps train.Deps, adjust func(*train.Spec)) (*Replay, error) {
	c, err := train.ReadSpec(dir)
	if err != nil {
		return nil, fmt.Errorf("nothing to replay: %w", err)
	}
	r := &Replay{Dir: dir}
	if r.epochs, r.files, err = train.Kept(dir, c); err != nil {
		return nil, err
	}
	if len(r.files) == 0 {
		return nil, fmt.Errorf("%s has no snapshots to replay: train with rna train --keep-every 1, which keeps the "+
			"weights of each epoch", dir)
	}
	if adjust != nil {
		adjust(&c)
	}
	r.Config = c
	c.Out, c.Init, c.InitKey, c.KeepEvery, c.KeepBest = "", "", "", 0, 0
	c.Teacher, c.TeacherAlpha, c.TeacherTemperature = "", 0, 0
	c.TensorBoard = false
	c.EMA, c.EMADecay, c.EMAEvery = nil, 0, 0
	c.RNA = average.Options{Mode: average.Off, Batches: c.RNA.Batches}
	if r.Run, err = train.New(c, deps); err != nil {
		return nil, fmt.Errorf("replaying %s: %w", dir, err)
	}
	return r, nil
}

// Epochs returns the epochs of the snapshots.
func (r *Replay) Epochs() []int { return r.epochs }

// Close releases the run.
func (r *Replay) Close() error { return r.Run.Close() }

// check validates options and fills in defaults.
func (r *Replay) check(o *Options) error {
	if o.Lambdas == nil {
		o.Lambdas = []Lambda{{Value: rna.DefaultLambda}}
	}
	if o.Betas == nil {
		o.Betas = []float64{rna.DefaultBeta}
	}
	if o.Stats == "" {
		o.Stats = Stats(r.Config.RNA.Stats)
	}
	if o.Stats != Last && o.Stats != Combine && o.Stats != Reestimate {
		return fmt.Errorf("unknown way of BatchNorm statistics %q: use %s, %s or %s", o.Stats, Last, Combine, Reestimate)
	}
	need, what := 0, ""
	for _, n := range o.Windows {
		if n < 1 || n > 100 {
			return fmt.Errorf("window %d: must lie between 1 and 100 residuals", n)
		}
		if n+1 > need {
			need, what = n+1, fmt.Sprintf("window %d", n)
		}
	}
	for _, k := range o.Averages {
		if k < 2 || k > 1000 {
			return fmt.Errorf("average of %d snapshots: must lie between 2 and 1000", k)
		}
		if k > need {
			need, what = k, fmt.Sprintf("average of %d", k)
		}
	}
	if have := len(r.files); need > have {
		return fmt.Errorf("%s needs %d snapshots, and %s has %d: choose less, or train with --keep-every 1", what, need,
			r.Dir, have)
	}
	for _, l := range o.Lambdas {
		if !l.Auto && !(l.Value >= 0) {
			return fmt.Errorf("lambda %g: must be 0 or more", l.Value)
		}
		if l.Auto && len(o.Windows) > 0 && r.Config.Holdout == 0 {
			return errors.New("lambda auto goes by the loss on held-out images, and the run has held out none: train with " +
				"--holdout 0.05, say")
		}
	}
	for _, b := range o.Betas {
		if math.IsNaN(b) || math.IsInf(b, 0) {
			return fmt.Errorf("beta %g: must be finite", b)
		}
	}
	for _, d := range o.Decays {
		if !(d > 0 && d < 1) {
			return fmt.Errorf("decay %g of a moving average: must lie between 0 and 1", d)
		}
	}
	if len(o.Windows) > 0 && r.Config.RNA.Mode == average.Online {
		return errors.New("RNA's points were put back into this run: its iterates go on from these, which are not kept, " +
			"and have no residuals of their own. Leave out windows, or train with --rna offline")
	}
	for _, p := range o.Profiles {
		if _, err := train.KeptEMAs(r.Dir, r.Config, r.epochs[len(r.epochs)-1]); err != nil {
			return err
		}
		if last := r.epochs[len(r.epochs)-1]; p.Epochs > float64(last) {
			return fmt.Errorf("%v: %s has %d epochs", p, r.Dir, last)
		}
	}
	if !r.Run.At(1).Scores() {
		return fmt.Errorf("%s has neither validation nor held-out images to score weights on", r.Config.Data)
	}
	return nil
}

// curves returns the requested curves, without points.
func (r *Replay) curves(o Options) []*Curve {
	name := r.Config.OptimizerName()
	list := []*Curve{{Name: name, Kind: network.SGD}}
	if o.Stats == Reestimate && r.Run.Net.HasStatistics() {
		list = append(list, &Curve{Name: name + ", BatchNorm recalibrated", Kind: network.SGDStats})
	}
	for _, n := range o.Windows {
		for _, l := range o.Lambdas {
			for _, b := range o.Betas {
				rule := "auto"
				if !l.Auto {
					rule = fmt.Sprintf("%g", l.Value)
					if math.IsInf(l.Value, 1) {
						rule = "inf"
					}
				}
				c := &Curve{Name: fmt.Sprintf("RNA of %d, lambda %s", n, rule), Kind: network.RNA, Window: n, Rule: &l,
					Lambda: rule, Beta: &b}
				if b != rna.DefaultBeta || len(o.Betas) > 1 {
					c.Name += fmt.Sprintf(", beta %g", b)
				}
				list = append(list, c)
			}
		}
	}
	for _, k := range o.Averages {
		list = append(list, &Curve{Name: fmt.Sprintf("average of %d", k), Kind: network.Average, Last: k})
	}
	for _, d := range o.Decays {
		list = append(list, &Curve{Name: fmt.Sprintf("EMA %g", d), Kind: network.EMA, Decay: d})
	}
	for _, p := range o.Profiles {
		c := &Curve{Name: p.String(), Kind: network.EMA, Gamma: p.Gamma, profile: &p}
		if p.Schedule != "" {
			c.WSM = fmt.Sprintf("%s:%g", p.Schedule, p.Epochs)
		}
		list = append(list, c)
	}
	return list
}
