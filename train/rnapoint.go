package train

import (
	"math"
	"time"

	"onlinerna/rna"
)

// extrapolate scores y⁺, keeps its weights and, if inject is set, goes on from it.
func (h *rnaHook) extrapolate(s *State, inject bool) error {
	rec := &RNARecord{}
	s.Record.RNA = rec
	var point weights
	defer func() { point.free() }()
	err := s.Aside(func() error {
		ok, err := h.point(s)
		if err != nil || !ok {
			inject = false
			return err
		}
		defer since(time.Now(), &s.Seconds.RNAEval)
		if err := h.setStats(s, rec.C); err != nil {
			return err
		}
		if rec.Score, err = s.Evaluate(); err != nil {
			return err
		}
		if ok, err = s.Net.Finite(); err != nil {
			return err
		}
		if !ok || rec.Score != nil && !rec.Score.Finite() {
			rec.Status, rec.Score, inject = "the extrapolated weights give no finite loss", nil, false
			return nil
		}
		if err := s.Judge(kindRNA, rec.Score); err != nil {
			return err
		}
		if err := s.Keep("rna", kindRNA); err != nil {
			return err
		}
		if inject = inject && rec.Choice != rna.Kept.String() && h.accepts(s.Record); !inject {
			return nil
		}
		return point.copyOf(s.Net)
	})
	if err != nil || !inject {
		return err
	}
	return h.inject(s, point)
}

// point writes the extrapolated weights to the network and how they came about to the record. It says whether
// there are any.
func (h *rnaHook) point(s *State) (bool, error) {
	if h.cfg.Search {
		return h.search(s)
	}
	defer since(time.Now(), &s.Seconds.RNA)
	opt := rna.Options{Beta: rna.Set(*h.cfg.Beta), Newest: h.cfg.Window}
	if h.cfg.Tau != nil {
		opt.Tau = rna.Set(*h.cfg.Tau)
	} else {
		opt.Lambda = rna.Set(*h.cfg.Lambda)
	}
	res, err := h.window.Extrapolate(s.Net.Params, opt)
	s.Record.RNA.note(res)
	return err == nil && res.Status == rna.OK, err
}

// search is point where the held-out loss chooses λ. Each candidate is judged with statistics of its own.
func (h *rnaHook) search(s *State) (bool, error) {
	var judging float64
	t := time.Now()
	choice, err := h.window.Search(s.Net.Params, func() (float64, error) {
		defer since(time.Now(), &judging)
		if err := s.Restate(); err != nil {
			return 0, err
		}
		score, err := s.EvaluateHeld()
		if err != nil {
			return 0, err
		}
		return score.Loss, nil
	}, rna.SearchOptions{Beta: rna.Set(*h.cfg.Beta), Newest: h.cfg.Window})
	s.Seconds.RNAEval += judging
	s.Seconds.RNA += time.Since(t).Seconds() - judging
	rec := s.Record.RNA
	rec.note(choice.Result)
	if err != nil || choice.Result.Status != rna.OK {
		return false, err
	}
	rec.Choice = choice.Kind.String()
	for _, c := range choice.Candidates {
		k := CandidateRecord{Kind: c.Kind.String(), Status: c.Result.Status.String(), NormC: c.Result.NormC, Loss: number(c.Value)}
		if c.Kind != rna.Kept {
			k.Lambda = number(c.Result.Lambda)
		}
		rec.Candidates = append(rec.Candidates, k)
	}
	return true, nil
}

// note writes the outcome of a solve.
func (r *RNARecord) note(res rna.Result) {
	r.Status, r.C, r.NormC = res.Status.String(), res.C, res.NormC
	if c := number(res.Condition); c != nil {
		r.Condition = *c
	}
	if res.C != nil {
		r.Lambda, r.Tau = number(res.Lambda), number(res.Tau)
	}
}

// accepts says whether the point may replace the iterate: its held-out loss must not be above that of the iterate, which has its
// statistics re-estimated, too, where there are any.
func (h *rnaHook) accepts(rec *EpochRecord) bool {
	if !h.cfg.Accept {
		return true
	}
	iterate := rec.held(kindSGDStats)
	if iterate == nil {
		iterate = rec.held(kindSGD)
	}
	ok := rec.held(kindRNA).Loss <= iterate.Loss // false for NaN
	outcome := rna.ValueRose
	if ok {
		outcome = rna.Accepted
	}
	rec.RNA.Outcome = outcome.String()
	return ok
}

// inject goes on from the extrapolated point: it is the y of the next residual.
func (h *rnaHook) inject(s *State, point weights) error {
	if err := copyWeights(weights{s.Net.Params, s.Net.Stats}, point); err != nil {
		return err
	}
	if h.cfg.Momentum == Reset {
		if err := s.ResetMomentum(); err != nil {
			return err
		}
	}
	s.Record.RNA.Injected = true
	if h.descent.v != nil { // residuals of their own form no chain
		return nil
	}
	h.window.Break()
	return h.window.Push(s.Net.Params)
}

// setStats gives the weights that are in the network, combined with coefficients c, their statistics.
func (h *rnaHook) setStats(s *State, c []float64) error {
	n := s.Net
	if n.Stats == nil {
		return nil
	}
	if h.cfg.Stats == Reestimate {
		return s.Restate()
	}
	sum := make([]float64, n.Stats.Len())
	for i, v := range h.stats[len(h.stats)-len(c):] {
		for j, x := range v {
			sum[j] += c[i] * x
		}
	}
	for _, span := range n.Variances() { // coefficients can be negative, a variance cannot
		variance := sum[span.Off : span.Off+span.Len]
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

// number is x for JSON, which has none that are not finite.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// since adds the time since t to a number of seconds.
func since(t time.Time, seconds *float64) { *seconds += time.Since(t).Seconds() }
