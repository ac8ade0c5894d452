package zoo

import (
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

// byobInit are the initial values of timm's byobnet.py.
func byobInit(p nn.Param) nn.Init {
	if len(p.Shape) == 4 {
		return google(p)
	}
	return normal(.01)(p)
}

// byobHead is the mean over pixels, and a linear layer.
func (b layer) byobHead(x *G.Node) *G.Node {
	return b.Linear("head.fc", b.pooled("head.drop", x), b.Config().Classes)
}
