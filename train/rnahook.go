package train

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
)

// rnaHook snapshots the flattened weights at the end of each epoch and extrapolates them: x are the weights at the
// end of an epoch, y those at its start. It scores the extrapolated weights, and plain averages of the
// same snapshots, beside the iterate; online it puts them in its place.
type rnaHook struct {
	run    *Run
	cfg    *RNAConfig
	window *rna.Window
	stats  [][]float64 // BatchNorm statistics of the newest snapshots, oldest first, to combine
	pushed int         // epoch of the newest snapshot
}

var (
	_ EpochHook   = (*rnaHook)(nil)
	_ SavingHook  = (*rnaHook)(nil)
	_ ClosingHook = (*rnaHook)(nil)
)

func newRNAHook(r *Run) (*rnaHook, error) {
	h := &rnaHook{run: r, cfg: &r.Config.RNA}
	space, err := h.space()
	if err != nil {
		return nil, err
	}
	if h.window, err = rna.NewWindow(space, h.cfg.capacity()); err != nil {
		return nil, err
	}
	return h, nil
}

// space holds snapshots in host memory, in the element type and the order of the device.
func (h *rnaHook) space() (rna.Space, error) {
	if h.run.dev.DType() == op.Float64 {
		return rna.NewHost64(h.run.Net.Params.Len(), h.run.Config.Threads)
	}
	return rna.NewHost32(h.run.Net.Params.Len(), h.run.Config.Threads)
}

func (h *rnaHook) Name() string { return "rna" }

func (h *rnaHook) AfterEpoch(s *State) error {
	t := time.Now()
	if err := h.snapshot(s); err != nil {
		return err
	}
	s.Record.Seconds.RNA += time.Since(t).Seconds()
	t = time.Now()
	if err := h.restated(s); err != nil {
		return err
	}
	for _, k := range h.cfg.Averages {
		if err := h.average(s, k); err != nil {
			return err
		}
	}
	s.Record.Seconds.RNAEval += time.Since(t).Seconds()
	due := (s.Epoch-h.cfg.Start)%h.cfg.Every == 0
	if s.Epoch < h.cfg.Start+2 || !due && !s.LastEpoch() { // one residual alone gives back its iterate
		return nil
	}
	return h.extrapolate(s, due && h.cfg.Mode == Online)
}

// snapshot takes the weights of this epoch, unless that was done before the run was interrupted.
func (h *rnaHook) snapshot(s *State) error {
	if s.Epoch < h.cfg.Start || s.Epoch <= h.pushed {
		return nil
	}
	if err := h.window.Push(s.Net.Params); err != nil {
		return err
	}
	if h.cfg.Stats == Combine && s.Net.Stats != nil {
		v := make([]float64, s.Net.Stats.Len())
		if err := s.Net.Stats.ReadAt64(v, 0); err != nil {
			return err
		}
		h.stats = append(h.stats, v)
		if len(h.stats) > h.window.Cap() {
			h.stats = slices.Delete(h.stats, 0, 1)
		}
	}
	h.pushed = s.Epoch
	return nil
}

// restated scores the iterate with statistics re-estimated as those of the combined weights are, so that
// what comes from the statistics is not taken for what comes from the weights.
func (h *rnaHook) restated(s *State) error {
	if s.Net.Stats == nil || !h.run.scores() || s.Epoch < h.cfg.Start {
		return nil
	}
	return h.run.aside(func() error {
		err := h.run.reestimate()
		if err != nil {
			return err
		}
		if s.Record.SGDStats, err = h.run.Evaluate(); err != nil {
			return err
		}
		return h.run.judge(s.Record, kindSGDStats, s.Record.SGDStats)
	})
}

// average scores the uniform average of the last k iterates.
func (h *rnaHook) average(s *State, k int) error {
	if h.window.Len() < k || !h.run.scores() {
		return nil
	}
	return h.run.aside(func() error {
		if err := h.window.Average(s.Net.Params, k); err != nil {
			return err
		}
		if err := h.setStats(uniform(k)); err != nil {
			return err
		}
		score, err := h.run.Evaluate()
		if err != nil {
			return err
		}
		if score != nil {
			s.Record.Averages = append(s.Record.Averages, AverageRecord{k, *score})
		}
		return h.run.judge(s.Record, kindAverage, score)
	})
}

// extrapolate scores y⁺, keeps its weights and, if inject is set, goes on from it.
func (h *rnaHook) extrapolate(s *State, inject bool) error {
	rec := &RNARecord{}
	s.Record.RNA = rec
	t := time.Now()
	var point weights
	defer func() { point.free() }()
	err := h.run.aside(func() error {
		res, err := h.window.Extrapolate(s.Net.Params, rna.Options{
			Lambda: rna.Set(*h.cfg.Lambda), Beta: rna.Set(*h.cfg.Beta), Newest: h.cfg.Window,
		})
		if err != nil {
			return err
		}
		rec.Status, rec.C, rec.NormC = res.Status.String(), res.C, res.NormC
		if !math.IsInf(res.Condition, 0) && !math.IsNaN(res.Condition) {
			rec.Condition = res.Condition
		}
		s.Record.Seconds.RNA += time.Since(t).Seconds()
		t = time.Now()
		if res.Status != rna.OK {
			inject = false
			return nil
		}
		if err := h.setStats(res.C); err != nil {
			return err
		}
		if rec.Score, err = h.run.Evaluate(); err != nil {
			return err
		}
		ok, err := h.run.finite()
		if err != nil {
			return err
		}
		if !ok || rec.Score != nil && !rec.Score.finite() {
			rec.Status, rec.Score, inject = "the extrapolated weights give no finite loss", nil, false
			return nil
		}
		if err := h.run.judge(s.Record, kindRNA, rec.Score); err != nil {
			return err
		}
		if err := h.run.keep("rna", kindRNA); err != nil || !inject {
			return err
		}
		return point.copyOf(s.Net)
	})
	s.Record.Seconds.RNAEval += time.Since(t).Seconds()
	if err != nil || !inject {
		return err
	}
	return h.inject(s, point)
}

// inject goes on from the extrapolated point: it is the y of the next residual.
func (h *rnaHook) inject(s *State, point weights) error {
	if err := copyWeights(weights{s.Net.Params, s.Net.Stats}, point); err != nil {
		return err
	}
	if h.cfg.Momentum == Reset {
		if err := h.run.momentum.Fill(0); err != nil {
			return err
		}
	}
	s.Record.RNA.Injected = true
	h.window.Break()
	return h.window.Push(s.Net.Params)
}

// setStats gives the weights that are in the network, combined with coefficients c, their statistics.
func (h *rnaHook) setStats(c []float64) error {
	n := h.run.Net
	if n.Stats == nil {
		return nil
	}
	if h.cfg.Stats == Reestimate {
		return h.run.reestimate()
	}
	sum := make([]float64, n.Stats.Len())
	for i, v := range h.stats[len(h.stats)-len(c):] {
		for j, x := range v {
			sum[j] += c[i] * x
		}
	}
	for _, s := range n.stats { // coefficients can be negative, a variance cannot
		variance := sum[s.off+s.n/2 : s.off+s.n]
		for j, v := range variance {
			variance[j] = max(v, 0)
		}
	}
	return n.Stats.WriteAt64(sum, 0)
}

func uniform(k int) []float64 {
	c := make([]float64, k)
	for i := range c {
		c[i] = 1 / float64(k)
	}
	return c
}

// copyOf allocates vectors and copies the network's weights into them.
func (w *weights) copyOf(n *Network) (err error) {
	if w.params, err = n.NewParams(); err != nil {
		return err
	}
	if n.Stats != nil {
		if w.stats, err = n.Device.NewVector(n.Stats.Len()); err != nil {
			return err
		}
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

// rnaState is the small part of the hook's state.
type rnaState struct {
	Pushed int         `json:"pushed"`
	Window rna.State   `json:"window"`
	Stats  [][]float64 `json:"stats,omitempty"`
}

// Save writes the window's vectors under the parameters' names, in PyTorch's order of elements.
func (h *rnaHook) Save(s *State, dir string) (json.RawMessage, error) {
	if k := h.window.Vectors(); k > 0 {
		tmp, err := s.Net.NewParams()
		if err != nil {
			return nil, err
		}
		defer tmp.Free()
		for i := range k {
			if err := readInto(tmp, h.window.Vector(i)); err != nil {
				return nil, err
			}
			if err := s.Net.saveVector(vectorFile(dir, i), tmp); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(rnaState{h.pushed, h.window.State(), h.stats})
}

// Load is the inverse of Save.
func (h *rnaHook) Load(s *State, dir string, small json.RawMessage) error {
	var st rnaState
	if err := json.Unmarshal(small, &st); err != nil {
		return err
	}
	if st.Window.N != h.window.Cap() {
		return fmt.Errorf("the checkpoint's window is for %d residuals, the config's for %d", st.Window.N, h.window.Cap())
	}
	if h.cfg.Stats == Combine && s.Net.Stats != nil {
		if len(st.Stats) < len(st.Window.Columns) {
			return fmt.Errorf("%d residuals, but BatchNorm statistics of %d iterates", len(st.Window.Columns), len(st.Stats))
		}
		for _, v := range st.Stats {
			if len(v) != s.Net.Stats.Len() {
				return fmt.Errorf("%d BatchNorm statistics, the model has %d", len(v), s.Net.Stats.Len())
			}
		}
	}
	tmp, err := s.Net.NewParams()
	if err != nil {
		return err
	}
	defer tmp.Free()
	w, err := rna.Restore(h.window.Space(), st.Window, func(i int) (rna.Source, error) {
		return tmp, s.Net.loadVector(vectorFile(dir, i), tmp)
	})
	if err != nil {
		return err
	}
	if err := h.window.Close(); err != nil {
		return err
	}
	h.window, h.pushed, h.stats = w, st.Pushed, st.Stats
	return nil
}

func (h *rnaHook) Close() error { return h.window.Close() }

func vectorFile(dir string, i int) string {
	return filepath.Join(dir, fmt.Sprintf("rna-%03d.safetensors", i))
}

// readInto copies a snapshot to a vector of the device, block by block.
func readInto(dst device.Vector, src rna.Source64) error {
	block := make([]float64, 1<<16)
	for off := 0; off < src.Len(); off += len(block) {
		b := block[:min(len(block), src.Len()-off)]
		if err := src.ReadAt64(b, off); err != nil {
			return err
		}
		if err := dst.WriteAt64(b, off); err != nil {
			return err
		}
	}
	return nil
}
