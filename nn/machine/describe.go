package machine

import (
	"gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
)

// Describe describes the programs of a registered model for training or evaluation to a device, which plans them.
func Describe(d device.Device, model string, batch int, mode nn.Mode) error {
	m, err := nn.Build(model, nn.Config{Batch: batch, Mode: mode})
	if err != nil {
		return err
	}
	keep := append(gorgonia.Nodes{m.Score}, m.Updates...)
	if mode == nn.Train {
		keep = append(keep, m.Loss)
		for _, p := range m.Params {
			keep = append(keep, p.Grad)
		}
	} else {
		keep = append(keep, m.Logits)
	}
	_, err = New(m.Graph, Config{Device: d, Keep: keep})
	return err
}
