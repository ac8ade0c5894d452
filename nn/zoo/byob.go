package zoo

import (
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

// byobPair are timm's names of a convolution and its normalisation in nets of its byobnet.py.
func byobPair(name string) [2]string { return [2]string{name + ".conv", name + ".bn"} }

// byobInit are the initial values of timm's byobnet.py, where convolutions are depthwise or have one group.
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
