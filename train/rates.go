package train

import (
	"context"
	"errors"
)

// errSwept means that a run's weights have gone through a sweep.
var errSwept = errors.New("its rates were swept")

// SweepRates trains a new run for a step at each of the given learning rates, without hooks, evaluations and files, over as
// many epochs as needed; an incomplete last step of an epoch is skipped. next receives the loss of each step, before
// its update, and ends the sweep by returning false. The weights are unusable afterwards: Train returns an error.
func (r *Run) SweepRates(ctx context.Context, rates []float64, next func(loss float64) bool) error {
	c := &r.Resolved
	switch {
	case !r.Ranks.Single():
		return errors.New("rates are swept by one process")
	case r.pos.Steps > 0:
		return errors.New("rates are swept from the start of a run")
	}
	r.broken = errSwept
	group := min(c.Accumulate, r.in.train.Steps()) // batches per step
	each := max(1, r.in.train.Images()/(c.Batch*group))
	for step := 0; step < len(rates); {
		last := min(step+each, len(rates))
		batches, images, loss := 0, 0, 0.
		for b, err := range r.in.train.Epoch(ctx, 1+step/each, 0) {
			if err != nil {
				return err
			}
			batches++
			planned := r.in.train.Between((step%each)*group, (step%each+1)*group)
			s := r.engine.step(step+1, b.N, planned, batches == 1, batches == group)
			s.Update.Numbers.Rate = rates[step]
			p, err := r.Net.Start(b, s)
			if err != nil {
				return err
			}
			l, _, err := p.Wait()
			if err != nil {
				return err
			}
			loss += l * float64(b.N)
			if images += b.N; batches < group {
				continue
			}
			if step++; !next(loss / float64(images)) {
				return nil
			}
			if step == last {
				break
			}
			batches, images, loss = 0, 0, 0
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
