package train

import (
	"errors"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
	"onlinerna/train/network"
)

// The methods of State are what a run does for its hooks: RNA and the averages of iterates are built on them and on the vectors of
// State.Net alone. They speak of the weights and the statistics that are in the network at the moment, whatever they are: a hook
// writes a point there, within Aside to have a look at it, or for good to have training go on from it.

// Aside runs fn, which may change the network's weights and statistics, and puts them back.
func (s *State) Aside(fn func() error) error { return s.run.aside(fn) }

// Restate gives the network's weights BatchNorm statistics of their own: their mean over training batches, the same ones whenever it is
// called in an epoch.
func (s *State) Restate() error { return s.run.reestimate() }

// Statistics reads the running statistics, those of all ranks; nil for a network without BatchNorm.
func (s *State) Statistics() ([]float64, error) {
	if s.Net.Stats == nil {
		return nil, nil
	}
	if err := s.run.averageStats(); err != nil {
		return nil, err
	}
	v := make([]float64, s.Net.Stats.Len())
	return v, s.Net.Stats.ReadAt64(v, 0)
}

// Evaluate scores the network's weights on the validation images. It is nil if there are none.
func (s *State) Evaluate() (*network.Score, error) { return s.run.Evaluate() }

// EvaluateHeld scores the network's weights on the held-out images. It is nil if there are none.
func (s *State) EvaluateHeld() (*network.Score, error) { return s.run.evaluateHeld() }

// Scores says whether there are images of either kind.
func (s *State) Scores() bool { return s.run.scores() }

// Judge scores the network's weights on the held-out images, notes it in the record under the kind of weights that they are, and keeps
// them as best.safetensors if nothing had a lower loss so far. Without held-out images it goes by val, the score on the validation images: nil
// leaves out weights that are there for comparison only.
func (s *State) Judge(kind string, val *network.Score) error { return s.run.judge(s.Record, kind, val) }

// Keep writes the network's weights to name.safetensors in the run's folder, if it has one. The kind is for the file's [network.Meta].
func (s *State) Keep(name, kind string) error { return s.run.keep(name, kind) }

// Gradient is the gradient of the step that AfterStep is called for: scale times grad. It is nil where the device left out the step. A
// hook that asks for it must not be late.
func (s *State) Gradient() (grad device.Vector, scale float64, err error) {
	grad, scale = s.Net.Grads, 1
	if s.run.sum != nil {
		grad, scale = s.run.sum, 1/float64(s.Step.Images)
	}
	if ok, err := s.run.stepped(grad); err != nil || !ok {
		return nil, 0, err
	}
	return grad, scale, nil
}

// ResetMomentum has the optimiser forget the steps so far.
func (s *State) ResetMomentum() error { return s.run.resetOptimizer() }

// Spacer is a [device.Device] that keeps RNA's snapshots in its own memory.
type Spacer interface {
	// NewSpace makes a space of vectors of dim elements.
	NewSpace(dim int) (rna.Space, error)
	// SpaceBytes is the memory that such a space takes with so many vectors.
	SpaceBytes(dim, vectors int) int64
}

// NewSpace makes a space of snapshots of the weights, in the element type and the order of the device: in its memory, or else in the host's.
func (s *State) NewSpace() (rna.Space, error) {
	dim := s.Net.Params.Len()
	if d, ok := device.As[Spacer](s.Net.Device); ok {
		return d.NewSpace(dim)
	}
	if s.Net.Device.DType() == op.Float64 {
		return rna.NewHost64(dim, s.Config.Threads)
	}
	return rna.NewHost32(dim, s.Config.Threads)
}

// weights is a pair of vectors like a network's.
type weights struct{ params, stats device.Vector }

func copyWeights(dst, src weights) error {
	if err := dst.params.Copy(src.params); err != nil || src.stats == nil {
		return err
	}
	return dst.stats.Copy(src.stats)
}

// open allocates vectors like the network's.
func (w *weights) open(n *network.Network) (err error) {
	if w.params, err = n.NewParams(); err != nil || n.Stats == nil {
		return err
	}
	w.stats, err = n.Device.NewVector(n.Stats.Len())
	return err
}

// copyOf allocates vectors and copies the network's weights into them.
func (w *weights) copyOf(n *network.Network) error {
	if err := w.open(n); err != nil {
		return err
	}
	return copyWeights(*w, weights{n.Params, n.Stats})
}

func (w *weights) free() {
	for _, v := range []device.Vector{w.params, w.stats} {
		if v != nil {
			v.Free()
		}
	}
	*w = weights{}
}

// aside is State.Aside.
func (r *Run) aside(fn func() error) (err error) {
	n := r.Net
	if r.spare.params == nil {
		if err := r.spare.open(n); err != nil {
			return err
		}
	}
	if err := copyWeights(r.spare, weights{n.Params, n.Stats}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copyWeights(weights{n.Params, n.Stats}, r.spare)) }()
	return fn()
}
