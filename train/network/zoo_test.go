package network

import (
	"bytes"
	"image"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/zoo/zootest"
)

// narrowNets are the names of zootest's nets; in short mode only nets with distinct layers.
func narrowNets(t *testing.T) (names []string) {
	for name := range zootest.Narrow {
		names = append(names, name)
	}
	slices.Sort(names)
	if testing.Short() {
		names = []string{"densenet_narrow", "efficientnet_narrow", "mobilenet_v3_small_narrow", "shufflenet_v2_narrow",
			"vgg_bn_narrow"}
	}
	return names
}

// TestZoo checks all uses of a net for each family of nets.
func TestZoo(t *testing.T) {
	dev := cpuDevice(t, 2)
	for _, arch := range narrowNets(t) {
		t.Run(arch, func(t *testing.T) {
			z := zooNet{t, arch, func(c nn.Config) *Network {
				c.Classes, c.Channels, c.Mean, c.Std, c.Seed = 2, 3, []float64{.5, .5, .5}, []float64{.25, .25, .25}, 3
				n, err := New(dev, arch, c, 1)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { n.Close() })
				return n
			}}
			a := zootest.Narrow[arch]
			random := nn.Config{Dropout: a.Dropout, DropPath: a.DropPath}
			plain := z.steps(z.open(random))
			z.lowMemory(plain, random)
			z.freeze()
			z.depths(plain)
			z.weights(plain)
		})
	}
}

type zooNet struct {
	*testing.T
	arch string
	open func(nn.Config) *Network
}

// steps takes two steps and returns the network.
func (z zooNet) steps(n *Network) *Network {
	o := step1(vector(z, n))
	o.First, o.Update.Factors = true, n.Factors(Rates{})
	for k := range 2 {
		p, err := n.Start(noise(4, n.cfg.Size, uint64(k)), o)
		if err != nil {
			z.Fatal(err)
		}
		if loss, _, err := p.Wait(); err != nil || math.IsNaN(loss) || math.IsInf(loss, 0) {
			z.Fatalf("loss %v, %v", loss, err)
		}
	}
	return n
}

func (z zooNet) lowMemory(plain *Network, c nn.Config) {
	n := z.open(c)
	n.LowMemory = true
	if z.steps(n); !slices.Equal(numbers(z, n.Params), numbers(z, plain.Params)) {
		z.Error("other bits with LowMemory")
	}
}

// freeze trains only the head.
func (z zooNet) freeze() {
	whole := z.open(nn.Config{})
	head := Head(whole.model)
	prefix := head[0]
	for _, name := range head {
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	n := z.open(nn.Config{Freeze: []string{"!" + prefix + "*"}})
	before := numbers(z, n.Params)
	after := numbers(z, z.steps(n).Params)
	for _, s := range n.params {
		same := slices.Equal(before[s.off:s.off+s.n], after[s.off:s.off+s.n])
		if trained := slices.Contains(head, s.name); same == trained {
			z.Errorf("%s: trained %v, unchanged %v", s.name, trained, same)
		}
	}
}

// depths checks that layer decay grows from the last layer to the first, and that blocks are no finer than layers.
func (z zooNet) depths(n *Network) {
	depths := LayerDepths(n.model)
	if !slices.IsSorted(depths) || depths[0] != 0 || depths[len(depths)-1] < 3 {
		z.Errorf("depths %v", depths)
	}
	factors := n.Factors(Rates{LayerDecay: .5})
	if len(factors) == 0 || factors[0].Rate != math.Pow(.5, float64(depths[len(depths)-1])) {
		z.Errorf("the first factor is %+v at a depth of %d", factors, depths[len(depths)-1])
	}
}

// weights checks that weights return from a file with the net's name, and that the net predicts and exports with them.
func (z zooNet) weights(n *Network) {
	path := filepath.Join(z.TempDir(), "w.safetensors")
	meta := Meta{Model: z.arch, Kind: SGD, Classes: []string{"a", "b"}, ImageSize: n.cfg.Size}
	if err := n.SaveWeights(path, n.Params, n.Stats, meta); err != nil {
		z.Fatal(err)
	}
	again := z.open(nn.Config{})
	if _, err := again.LoadWeights(path); err != nil {
		z.Fatal(err)
	}
	img := image.NewRGBA(image.Rect(0, 0, 70, 80))
	for i := range img.Pix {
		img.Pix[i] = uint8(i * 37)
	}
	p, err := n.Predict(img, nil)
	q, err2 := again.Predict(img, nil)
	if err != nil || err2 != nil || !slices.Equal(p, q) || math.Abs(p[0]+p[1]-1) > 1e-6 {
		z.Errorf("probabilities %v and %v, %v, %v", p, q, err, err2)
	}
	var file bytes.Buffer
	if err := again.WriteONNX(&file, meta, 0); err != nil || file.Len() < 4*n.model.NumParams() {
		z.Errorf("ONNX: %d bytes, %v", file.Len(), err)
	}
}
