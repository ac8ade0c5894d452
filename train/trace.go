package train

import "onlinerna/nn/machine"

// Trace has later batches report to t how long each group of ops took, see [machine.Tracer]; nil ends that.
func (n *Network) Trace(t machine.Tracer) {
	n.tracer = t
	for _, p := range n.progs {
		p.m.Trace(t)
	}
	if n.pipe != nil {
		for _, p := range n.pipe.progs {
			p.m.Trace(t)
		}
	}
}
