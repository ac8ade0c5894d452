package train

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
)

// lossScale is the device's scale of the loss, nil where there is none.
func (r *Run) lossScale() (*device.LossScale, error) {
	d, ok := device.As[device.LossScaler](r.Device)
	if !ok {
		return nil, nil
	}
	s, err := d.LossScale()
	if err != nil || s.Scale == 0 {
		return nil, err
	}
	return &s, nil
}

// resumeScale goes on from a state, or, where the device scales and there is none, from the device's.
func (r *Run) resumeScale(s *device.LossScale) error {
	now, err := r.lossScale()
	r.scaled = now != nil
	if err != nil || now == nil {
		return err
	}
	if s == nil {
		r.pos.Skipped = now.Skipped
		return nil
	}
	d, _ := device.As[device.LossScaler](r.Device)
	return d.SetLossScale(*s)
}

// stepped says whether the optimiser made a step on a gradient: where the loss is scaled it passes over those that are not finite.
func (r *Run) stepped(grad device.Vector) (bool, error) {
	if !r.scaled {
		return true, nil
	}
	return grad.Finite()
}

// recordScale notes the scale of the loss at the end of an epoch. One that fell to nothing says that the gradient is never finite.
func (r *Run) recordScale(rec *hook.EpochRecord) error {
	s, err := r.lossScale()
	if err != nil || s == nil {
		return err
	}
	rec.LossScale, rec.Skipped = s.Scale, s.Skipped-r.pos.Skipped
	if s.Scale < leastScale && rec.Skipped > 0 {
		return r.diverged(fmt.Sprintf("%d gradients are not finite, with the loss scaled by %g at last", rec.Skipped, s.Scale), rec.Step)
	}
	return nil
}

// leastScale is far below what a gradient in 16 bits needs not to overflow.
const leastScale = 0x1p-20
