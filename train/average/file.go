package average

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/hook"
	"onlinerna/train/ranks/shard"
)

// state is the small part of the hook's state.
type state struct {
	Pushed int         `json:"pushed"`
	Window rna.State   `json:"window"`
	Stats  [][]float64 `json:"stats,omitempty"`

	// Steps in the means of the current segment.
	Mean    int `json:"mean,omitempty"`
	Descent int `json:"descent,omitempty"`
}

// Sharded implements hook.ShardedHook: each rank has a part of the window's vectors.
func (h *RNA) Sharded() {}

// Save writes the window's vectors under the parameters' names, in PyTorch's order of elements.
func (h *RNA) Save(s *hook.State, dir string) (json.RawMessage, error) {
	if k := h.window.Vectors(); k > 0 {
		tmp, err := s.Net.NewParams()
		if err = s.Ranks.Together(err); err != nil {
			return nil, err
		}
		defer tmp.Free()
		for i := range k {
			if err := fill(s, tmp, h.window.Vector(i)); err != nil {
				return nil, err
			}
			err := s.Net.SaveShare(vectorFile(dir, i), tmp, "", s.Share)
			if err = s.Ranks.Together(err); err != nil {
				return nil, err
			}
		}
	}
	for name, m := range h.means() {
		if m.n > 0 {
			if err := s.Net.SaveShare(filepath.Join(dir, name), m.v, "", s.Share); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(state{h.pushed, h.window.State(), h.stats, h.mean.n, h.descent.n})
}

// Load is the inverse of Save.
func (h *RNA) Load(s *hook.State, dir string, small json.RawMessage) error {
	var st state
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
	h.mean.n, h.descent.n = st.Mean, st.Descent
	for name, m := range h.means() {
		if m.n > 0 && m.v == nil {
			return fmt.Errorf("the checkpoint has a mean over a segment, %s, that the config does not ask for", name)
		}
		if m.n > 0 {
			if err := s.Net.LoadVector(filepath.Join(dir, name), m.v); err != nil {
				return err
			}
		}
	}
	tmp, err := s.Net.NewParams()
	if err != nil {
		return err
	}
	defer tmp.Free()
	w, err := rna.Restore(h.window.Space(), st.Window, func(i int) (rna.Source, error) {
		return tmp, s.Ranks.Together(s.Net.LoadVector(vectorFile(dir, i), tmp))
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

// means returns the means of the current segment by the names of their files.
func (h *RNA) means() map[string]*running {
	return map[string]*running{"rna-mean.safetensors": &h.mean, "rna-gradient.safetensors": &h.descent}
}

func (h *RNA) Close() error {
	for _, m := range h.means() {
		if m.v != nil {
			m.v.Free()
		}
	}
	if h.window == nil { // not opened
		return nil
	}
	return h.window.Close()
}

func vectorFile(dir string, i int) string {
	return filepath.Join(dir, fmt.Sprintf("rna-%03d.safetensors", i))
}

// fill copies to a device vector the elements of a snapshot that this rank writes. A tensor in the parts of several
// ranks goes to all.
func fill(s *hook.State, dst device.Vector, src rna.Source64) error {
	part, lo, divided := shard.Part(src)
	if !divided {
		return copyInto(dst, 0, src, 0, src.Len())
	}
	var failed error
	if part != nil {
		failed = copyInto(dst, lo, part, 0, part.Len())
	}
	if err := s.Ranks.Together(failed); err != nil {
		return err
	}
	for _, x := range s.Net.Straddling(s.Share.Of, s.Ranks.Size()) {
		if err := copyInto(dst, x.Off, src, x.Off, x.Len); err != nil {
			return err
		}
	}
	return nil
}

// copyInto copies n elements to a device vector, block by block.
func copyInto(dst device.Vector, to int, src rna.Source64, from, n int) error {
	block := make([]float64, min(n, 1<<16))
	for at := 0; at < n; at += len(block) {
		b := block[:min(len(block), n-at)]
		if err := src.ReadAt64(b, from+at); err != nil {
			return err
		}
		if err := dst.WriteAt64(b, to+at); err != nil {
			return err
		}
	}
	return nil
}
