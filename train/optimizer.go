package train

import (
	"onlinerna/nn/device"
	"onlinerna/train/network"
)

// openOptimizer allocates the optimiser's state.
func (r *Run) openOptimizer() error {
	o, err := r.Resolved.NewOptimizer()
	if err != nil {
		return err
	}
	r.update = device.Update{Optimizer: o, Tensors: r.Net.Tensors()}
	if r.update.Matrices, err = r.Net.Matrices(o); err != nil {
		return err
	}
	r.update.Clip = device.Clip{Norm: r.Resolved.ClipGrad, Value: r.Resolved.ClipValue}
	if r.update.NoDecay, err = r.Net.Exempt(r.Resolved.DecayWeightsOnly, r.Resolved.NoDecay...); err != nil {
		return err
	}
	r.setRates()
	for range r.update.Optimizer.State() {
		v, err := r.Net.NewParams()
		if err != nil {
			return noRoom(&r.Resolved, err)
		}
		r.update.State = append(r.update.State, v)
	}
	if err := r.openAveraged(); err != nil {
		return noRoom(&r.Resolved, err)
	}
	return nil
}

// setRates gives each layer its learning rate.
func (r *Run) setRates() {
	c := &r.Resolved
	r.update.Factors = r.Net.Factors(network.Rates{Head: c.HeadRate / c.Schedule.Rate, LayerDecay: c.LayerDecay})
}

// resetOptimizer begins anew with the optimiser's state. Bias corrections count steps from here, without those that
// were skipped.
func (r *Run) resetOptimizer() error {
	for _, v := range r.update.State {
		if err := v.Fill(0); err != nil {
			return err
		}
	}
	s, err := r.lossScale()
	if err != nil {
		return err
	}
	r.pos.Origin, r.pos.Shares = r.pos.Steps, shares{}
	if s != nil {
		r.pos.Origin -= s.Skipped
	}
	return nil
}

// stateFile is where a checkpoint has a vector of the optimiser's state.
func stateFile(name string) string { return name + ".safetensors" }
