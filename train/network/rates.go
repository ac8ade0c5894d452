package network

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"onlinerna/nn"
	"onlinerna/nn/device"
)

// Rates are the differences of learning rates among parameters.
type Rates struct {
	Head       float64 // factor of the last layer's rate; 0 means 1
	LayerDecay float64 // factor of each layer's rate relative to the next layer's; 0 means 1
}

// Factors are the parameters' learning-rate factors: 0 if frozen.
func (n *Network) Factors(r Rates) []device.Factor {
	head, depth := Head(n.model), LayerDepths(n.model)
	last := slices.Max(depth)
	var list []device.Factor
	for i, s := range n.params {
		rate := 1.
		if r.LayerDecay > 0 {
			rate = math.Pow(r.LayerDecay, float64(last-depth[i]))
		}
		if r.Head > 0 && slices.Contains(head, s.name) {
			rate = r.Head
		}
		if n.model.Params[i].Frozen {
			rate = 0
		}
		if k := len(list) - 1; k >= 0 && list[k].Rate == rate && list[k].Off+list[k].Len == s.off {
			list[k].Len += s.n
		} else if rate != 1 {
			list = append(list, device.Factor{Span: device.Span{Off: s.off, Len: s.n}, Rate: rate})
		}
	}
	return list
}

// LayerDepths numbers the layers of a model for each parameter, from 0. A layer is a block, such as layer1.0 of a
// ResNet, or a layer outside of blocks. A normalisation belongs to the layer before it. If some parameter before the
// first block belongs to no layer, such as a class token, all parameters before the first block form the first layer.
// Heads beside each other are one layer.
// ResNets and vision transformers thus get timm's numbering: the stem, the blocks, the head.
func LayerDepths(m *nn.Model) []int {
	depths := make([]int, len(m.Params))
	before, depth, stem := "", -1, false
	var blocks *regexp.Regexp
	if m.Arch.Block != "" {
		blocks = regexp.MustCompile(m.Arch.Block)
	}
	for i, p := range m.Params {
		layer, block := layerOf(p.Name)
		if blocks != nil {
			if found := blocks.FindStringSubmatch(p.Name); found != nil {
				layer, block = found[1], true
			}
		}
		if last := p.Name[strings.LastIndexByte(p.Name, '.')+1:]; depth <= 0 && last != "weight" && last != "bias" {
			stem = true
		}
		if slices.Contains(m.Arch.Heads, layer) {
			layer = m.Arch.Heads[0]
		}
		stem = stem && !block
		norm := p.BiasOrNorm && !block && strings.HasSuffix(p.Name, ".weight")
		if layer != before && !norm && !stem || depth < 0 {
			depth++
		}
		depths[i], before = depth, layer
	}
	return depths
}

// layerOf is a parameter's layer: its name up to the first numeric part, which makes it a block, or else without the
// last part.
func layerOf(name string) (layer string, block bool) {
	parts := strings.Split(name, ".")
	for i, p := range parts[:len(parts)-1] {
		if strings.Trim(p, "0123456789") == "" && i+2 < len(parts) {
			return strings.Join(parts[:i+1], "."), true
		}
	}
	return strings.Join(parts[:len(parts)-1], "."), false
}
