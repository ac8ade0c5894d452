package average

import (
	"context"
	"math"
	"time"

	"onlinerna/rna"
	"onlinerna/train/hook"
)

// point writes the extrapolated weights to the network, and their coefficients to the record. It reports whether there
// are any.
func (h *RNA) point(ctx context.Context, s *hook.State) (bool, error) {
	if h.cfg.Search {
		return h.search(ctx, s)
	}
	defer since(time.Now(), &s.Seconds.RNA)
	opt := rna.Options{Beta: rna.Set(*h.cfg.Beta), Newest: h.cfg.Window}
	if h.cfg.Tau != nil {
		opt.Tau = rna.Set(*h.cfg.Tau)
	} else {
		opt.Lambda = rna.Set(*h.cfg.Lambda)
	}
	res, err := h.window.Extrapolate(s.Net.Params, opt)
	h.note(s.Record.RNA, res)
	return err == nil && res.Status == rna.OK, err
}

// search is point with λ chosen by the held-out loss. Each candidate is recalibrated.
func (h *RNA) search(ctx context.Context, s *hook.State) (bool, error) {
	var judging float64
	t := time.Now()
	choice, err := h.window.Search(s.Net.Params, func() ([]float64, error) {
		defer since(time.Now(), &judging)
		if err := s.Recalibrate(ctx); err != nil {
			return nil, err
		}
		return s.HeldLosses(ctx)
	}, rna.SearchOptions{Beta: rna.Set(*h.cfg.Beta), Newest: h.cfg.Window})
	s.Seconds.RNAEval += judging
	s.Seconds.RNA += time.Since(t).Seconds() - judging
	rec := s.Record.RNA
	h.note(rec, choice.Result)
	if err != nil || choice.Result.Status != rna.OK {
		return false, err
	}
	rec.Choice, rec.NoDifference = choice.Kind.String(), choice.NoDifference
	for _, c := range choice.Candidates {
		k := hook.CandidateRecord{Kind: c.Kind.String(), Status: c.Result.Status.String(), NormC: c.Result.NormC,
			Loss: number(c.Value)}
		if c.Kind != rna.Kept {
			k.Lambda = number(c.Result.Lambda)
			if k.Loss != nil {
				k.Difference, k.Error = number(c.Difference), number(c.Error)
			}
		}
		rec.Candidates = append(rec.Candidates, k)
	}
	return true, nil
}

// note writes the result of a solve into a record.
func (h *RNA) note(r *hook.RNARecord, res rna.Result) {
	r.Status, r.C, r.NormC = res.Status.String(), res.C, res.NormC
	if c := number(res.Condition); c != nil {
		r.Condition = *c
	}
	if res.C != nil {
		r.Lambda, r.Tau, r.Distance = number(res.Lambda), number(res.Tau), number(rna.FromUniform(res.C))
		if c, noise := rna.NoiseCoefficients(h.window.Gram(len(res.C))); c != nil {
			r.NoiseDistance, r.Noise = number(rna.FromUniform(c)), noise
		}
	}
}

// number returns x for JSON, nil if it is not finite.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
