// Package zootest has small nets of all families of package zoo, for tests. Importing it registers them.
package zootest

import (
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

// Narrow are nets of the families with few channels and blocks, by name: those of package zoo's testdata.
var Narrow = map[string]nn.Architecture{}

// register adds narrow nets.
func register(nets map[string]nn.Architecture) {
	for name, a := range nets {
		a.Name = name
		nn.Register(a)
		Narrow[name] = a
	}
}

// nothing is a probability of dropout that drops nothing: steps of the graphs that have it can be compared.
const nothing = 1e-12

// like is a registered net with other layers.
func like(name string, build func(*nn.Builder, *G.Node) *G.Node) nn.Architecture {
	a, err := nn.Lookup(name)
	if err != nil {
		panic(err)
	}
	a.Build, a.Size, a.Resize, a.MinSize = build, 64, 0, 0
	return a
}

// likeOwn is like, with the initial values of the net.
func likeOwn(name string, net interface {
	Build(b *nn.Builder, x *G.Node) *G.Node
	Initial(p nn.Param) nn.Init
}) nn.Architecture {
	a := like(name, net.Build)
	a.Init = net.Initial
	return a
}

// sized is a for larger images, which it needs.
func sized(size int, a nn.Architecture) nn.Architecture {
	a.Size = size
	return a
}

// placed is a with the number of places before those of patches.
func placed(first int, a nn.Architecture) nn.Architecture {
	a.Positions.First = first
	return a
}

// dropping is a with dropout and stochastic depth.
func dropping(dropout, path float64, a nn.Architecture) nn.Architecture {
	a.Dropout, a.DropPath = dropout, path
	return a
}
