package zoo_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/graph"
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/internal/golden"
	"onlinerna/nn/machine"
	"onlinerna/nn/machine/machinetest"
	"onlinerna/nn/op"
	"onlinerna/nn/zoo/zootest"
)

// TestPublished compares the nets with the figures that torchvision and timm publish beside their weights: parameters,
// multiplications and additions of an image, and how images are prepared.
func TestPublished(t *testing.T) {
	b, err := os.ReadFile("testdata/published.tsv")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		m, err := nn.Build(f[0], nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Error(err)
			continue
		}
		seen[f[0]] = true
		if got := fmt.Sprint(m.NumParams()); got != f[1] {
			t.Errorf("%s: %s parameters, want %s", f[0], got, f[1])
		}
		if f[2] != "" {
			want, _ := strconv.ParseFloat(f[2], 64)
			if flops, err := m.FLOPs(); err != nil || math.Abs(float64(flops)/2e9-want) > .00051 {
				t.Errorf("%s: %.4f·10⁹ pairs, %v; want %s", f[0], float64(flops)/2e9, err, f[2])
			}
		}
		a := m.Arch
		resize, how := cmp.Or(a.Resize, int(math.Round(float64(a.Size)*256/224))), cmp.Or(a.Interpolation, "bilinear")
		got := fmt.Sprintln(a.Size, resize, how, a.Mean, a.Std)
		list := func(s string) string { return "[" + strings.ReplaceAll(s, ",", " ") + "]" }
		if want := fmt.Sprintln(f[3], f[4], f[5], list(f[6]), list(f[7])); got != want {
			t.Errorf("%s takes %s, want %s", f[0], got, want)
		}
	}
	for _, a := range nn.Architectures() {
		if a.Mean != nil && !seen[a.Name] && !strings.Contains(a.Name, "narrow") {
			t.Errorf("published.tsv lacks %s", a.Name)
		}
	}
}

// Each net has the fields that rna models prints. The smallest of a family takes another number of classes and
// of channels.
func TestArchitectures(t *testing.T) {
	smallest := map[string]nn.Architecture{} // by family
	parameters := func(a nn.Architecture) int {
		s, _ := a.Sizes()
		return s.Parameters
	}
	for _, a := range nn.Architectures() {
		if a.Family == "" || a.Summary == "" || a.Reference == "" || (a.Mean == nil) != (a.Classes != 1000) {
			t.Errorf("%+v", a)
		}
		if b, ok := smallest[a.Family]; !ok || parameters(a) < parameters(b) {
			smallest[a.Family] = a
		}
	}
	for _, a := range smallest {
		m, err := a.Model(nn.Config{Batch: 2, Classes: 7, Channels: 1, Dropout: .5, DropPath: .1})
		if err != nil {
			t.Error(err)
		} else if m.RandomCounter == nil && a.Dropout+a.DropPath > 0 {
			t.Errorf("%s has no random layer", a.Name)
		}
	}
}

// Inputs that do not fit are refused with the layer and its shapes.
func TestInputs(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want string
	}{
		"vgg16": {300, "layer avgpool: (1, 512, 9, 9) is not a multiple of 7×7 pixels, " +
			"which the linear layers take: choose an input size of 224"},
		"swin_t":   {225, "images of 225×225 pixels: height and width must be multiples of 4: choose an input size of 224 or 228"},
		"vit_b_16": {100, "images of 100×100 pixels: height and width must be multiples of 16: choose an input size of 96 or 112"},
		"maxvit_t": {300, "images of 300×300 pixels: height and width must be multiples of 224: choose an input size of 224 or 448"},
		"crossvit_9_240": {300, "images of 300×300 pixels: patches of 12×12 and 16×16 do not fill the two images: " +
			"choose an input size of 360"},
		"nest_tiny_jx": {220, "images of 220×220 pixels: height and width must be multiples of 16: " +
			"choose an input size of 208 or 224"},
		"maxvit_tiny_tf_224": {300, "images of 300×300 pixels: height and width must be multiples of 32: " +
			"choose an input size of 288 or 320"},
	} {
		_, err := nn.Build(name, nn.Config{Batch: 1, Size: c.size})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s at %d pixels: %v, want …%s…", name, c.size, err, c.want)
		}
	}
}

// Without LayerScale the factors of ConvNeXt's branches start as torchvision's and timm's, which decay torchvision's
// alone. convnext_narrow.json judges other initial factors.
func TestLayerScale(t *testing.T) {
	for name, want := range map[string]struct {
		factor string
		number int
		exempt bool
	}{
		"convnext_tiny":   {".layer_scale", 18, false},
		"convnext_atto":   {".gamma", 12, true},
		"convnextv2_atto": {".gamma", 0, true},
	} {
		m, err := nn.Build(name, nn.Config{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, p := range m.Params {
			if strings.HasSuffix(p.Name, want.factor) {
				found++
				if p.Init != (nn.Init{Distribution: nn.Constant, Scale: 1e-6}) || p.BiasOrNorm != want.exempt {
					t.Errorf("%s starts as %v, exempt %t", p.Name, p.Init, p.BiasOrNorm)
				}
			}
		}
		if found != want.number {
			t.Errorf("%s: %d branches have a factor, want %d", name, found, want.number)
		}
	}
}

// DINO, CLIP and EVA-02 need constants that the shapes of their tensors do not show.
func TestTransformerConstants(t *testing.T) {
	for _, a := range nn.Architectures() {
		dino := strings.HasSuffix(a.Name, "_dinov2")
		clip := strings.Contains(a.Name, "_clip_") && strings.HasPrefix(a.Name, "vit_")
		dino3, eva := strings.Contains(a.Name, "_dinov3"), strings.HasPrefix(a.Name, "eva02_")
		if !dino && !clip && !dino3 && !eva || strings.Contains(a.Name, "narrow") {
			continue
		}
		m, err := a.Model(nn.Config{Batch: 1, Size: 224, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		eps, factor := 1e-6, nn.Init{Distribution: nn.Constant, Scale: 1e-5}
		if clip || dino3 {
			eps = 1e-5
		}
		for _, n := range m.Graph.AllNodes() {
			if o, ok := n.Op().(*nn.Op); ok {
				if norm, ok := o.Op().(op.LayerNorm); ok && norm.Eps != eps {
					t.Errorf("%s: %s has ε = %g, want %g", a.Name, o.Layer(), norm.Eps, eps)
				}
			}
		}
		for _, p := range m.Params {
			if strings.Contains(p.Name, ".gamma") && p.Init != factor {
				t.Errorf("%s: %s starts as %v", a.Name, p.Name, p.Init)
			}
		}
	}
}

// tanhs are SigLIP's towers whose activation is an approximation by tanh in timm.
var tanhs = regexp.MustCompile(`^vit_(base_patch32|so400m_patch16|giantopt_patch16)_siglip_|` +
	`^vit_large_patch16_siglip_(gap_)?512$`)

// SigLIP's towers have timm's activation, which the names and shapes of their tensors do not show.
func TestSigLIPActivation(t *testing.T) {
	for _, a := range nn.Architectures() {
		if !strings.Contains(a.Name, "_siglip_") {
			continue
		}
		m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		tanh, all := 0, 0
		for _, n := range m.Graph.AllNodes() {
			if o, ok := n.Op().(*nn.Op); ok && strings.HasSuffix(o.Layer(), ".gelu") {
				all++
				if strings.Contains(o.Op().String(), "tanh") {
					tanh++
				}
			}
		}
		want := 0
		if tanhs.MatchString(a.Name) {
			want = all
		}
		if all < 12 || tanh != want {
			t.Errorf("%s: %d of %d activations are approximations by tanh, want %d", a.Name, tanh, all, want)
		}
	}
}

// timm's Swin transformers V2 measure offsets by the windows of their first training.
func TestPretrainedWindows(t *testing.T) {
	for name, want := range map[string][2]float64{ // window and pretrained window of the last stage, less 1
		"swinv2_tiny_window16_256":           {7, 7},
		"swinv2_base_window12to16_192to256":  {7, 5},
		"swinv2_large_window12to24_192to384": {11, 5},
	} {
		m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		got := 0.
		for _, n := range m.Graph.AllNodes() {
			if n.Name() == "layers.3.blocks.0.attn.coords" {
				got = float64(slices.Max(n.Value().Data().([]float32)))
			}
		}
		if want := math.Log2(8*want[0]/want[1]+1) / 3; math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: the offsets of the last stage go to %g, want %g", name, got, want)
		}
	}
}

// A layer of DenseNet drops results of its second convolution, as torchvision's drop_rate does.
func TestDenseDropout(t *testing.T) {
	a := zootest.Narrow["densenet_small"]
	m, err := a.Model(nn.Config{Batch: 2, Dropout: a.Dropout})
	if err != nil {
		t.Fatal(err)
	}
	operand := func(n *G.Node, i int) (*G.Node, string) {
		n = graph.NodesOf(m.Graph.From(n.ID()))[i].(*G.Node)
		if o, ok := n.Op().(*nn.Op); ok {
			return n, o.Layer()
		}
		return n, ""
	}
	found := 0
	for _, n := range m.Graph.AllNodes() {
		o, ok := n.Op().(*nn.Op)
		if !ok || !strings.HasSuffix(o.Layer(), ".concat") || o.Op().Kind() != "concat" {
			continue
		}
		found++
		dropout, added := operand(n, 1)
		_, dropped := operand(dropout, 0)
		name := strings.TrimSuffix(o.Layer(), "concat")
		if added != name+"dropout" || dropped != name+"conv2" {
			t.Errorf("%s adds %s of %s", o.Layer(), added, dropped)
		}
	}
	if found != 5 {
		t.Errorf("%d layers, want 5", found)
	}
}

// timm's residual blocks begin as their shortcuts. resnet_timm_narrow.json judges bottlenecks.
func TestZeroLast(t *testing.T) {
	m, err := nn.Build("resnet18d", nn.Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Params {
		zero := strings.HasPrefix(p.Name, "layer") && strings.HasSuffix(p.Name, ".bn2.weight")
		if strings.HasSuffix(p.Name, ".weight") && (p.Init == nn.Init{}) != zero {
			t.Errorf("%s starts as %v", p.Name, p.Init)
		}
	}
}

// The first convolution of grey images does not start as depthwise ones.
func TestGreyStems(t *testing.T) {
	for _, name := range []string{"efficientnet_lite0", "mobilenetv3_small_100", "mobilenetv4_conv_small", "mobilevit_xxs"} {
		m, err := nn.Build(name, nn.Config{Batch: 1, Channels: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		p := m.Params[0]
		if want := nn.HeNormal(p.Shape[0], p.Shape[2]*p.Shape[3]); p.Init != want {
			t.Errorf("%s: %s%v starts as %v, want %v", name, p.Name, p.Shape, p.Init, want)
		}
	}
}

// RepVGG's normalisations start around 0.1 and 0, which few numbers do not show.
func TestRepVGGStarts(t *testing.T) {
	m, err := nn.Build("repvgg_a0", nn.Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Params {
		want := nn.Init{Distribution: nn.Normal, Scale: .1}
		switch {
		case len(p.Shape) > 1 || strings.HasPrefix(p.Name, "head."):
			continue
		case strings.HasSuffix(p.Name, ".weight"):
			want.Mean = .1
		}
		if p.Init != want {
			t.Errorf("%s starts as %v", p.Name, p.Init)
		}
	}
}

// Channels that are 0 in all pixels have gradients that are numbers.
func TestResponseOfZeros(t *testing.T) {
	a := zootest.Narrow["convnextv2_narrow"]
	m, err := a.Model(nn.Config{Batch: 2, Classes: 2, Size: 32, FloatInput: true, DType: op.Float64})
	if err != nil {
		t.Fatal(err)
	}
	k := uint64(0)
	c := machine.Config{Device: device.NewReference(op.Float64)}
	n, err := machinetest.NewModel(m, c, nil, func(e nn.Entry) op.Tensor {
		k++
		if strings.HasSuffix(e.Name, ".fc1.bias") { // GELU is 0 there
			return numbers(k, e.Shape, func(float64) float64 { return -1000 })
		}
		return formula(k, e)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	j := judge{T: t}
	j.write(n, m.Input, numbers(imageStream, op.Shape(m.Input.Shape()), func(u float64) float64 { return u }))
	j.write(n, m.Labels, golden.Labels(2))
	j.run(n)
	if x, err := n.Grads.Norm(); err != nil || !(x > 0 && x < 1e6) {
		t.Errorf("the gradient has the norm %v, %v", x, err)
	}
}

// Rows, then columns, rotate the pairs of patches by angles of the published weights: here those of the last patch.
func TestRotations(t *testing.T) {
	for _, c := range []struct {
		net       string
		size, row int
		heads     int
		angle     float64 // of the first pair
		second    float64 // of the pair beside it
	}{
		{"vit_base_patch16_dinov3", 256, 4 + 256, 12, 2 * math.Pi * .9375, 2 * math.Pi * .9375 / math.Pow(100, 1./16)},
		{"vit_base_patch16_dinov3", 320, 4 + 400, 12, 2 * math.Pi * .95, 2 * math.Pi * .95 / math.Pow(100, 1./16)},
		{"eva02_base_patch14_224", 224, 256, 12, 15, 15 / math.Pow(10000, 1./16)},
		{"eva02_base_patch14_448", 448, 1024, 12, 15.5, 15.5 / math.Pow(10000, 1./16)},
		{"eva02_tiny_patch14_336", 336, 576, 3, 16 * 23. / 24, 16 * 23. / 24 / math.Pow(10000, 1./16)},
	} {
		m, err := nn.Build(c.net, nn.Config{Batch: 1, Size: c.size, Mode: nn.Eval, DType: op.Float64})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, n := range m.Graph.AllNodes() {
			if o, ok := n.Op().(*nn.Op); ok {
				if a, ok := o.Op().(op.SelfAttention); ok && a.Heads != c.heads {
					t.Errorf("%s has %d heads, want %d", c.net, a.Heads, c.heads)
				}
			}
			if n.Name() != "rope.cos.head" {
				continue
			}
			found++
			x := n.Value().Data().([]float64)
			second := 1
			if strings.HasPrefix(c.net, "eva02_") { // behind the first pair
				second = 2
			}
			if x := x[64*c.row:]; math.Abs(x[0]-math.Cos(c.angle)) > 1e-12 || math.Abs(x[second]-math.Cos(c.second)) > 1e-12 {
				t.Errorf("%s at %d pixels: cosines %v, %v of the last patch", c.net, c.size, x[0], x[second])
			}
		}
		if found != 1 {
			t.Errorf("%s has %d tables", c.net, found)
		}
	}
}

// BiT's weights need an ε of standardised weights that the shapes of their tensors do not show.
func TestBiTConstants(t *testing.T) {
	m, err := nn.Build("resnetv2_50x1_bit", nn.Config{Batch: 1, Mode: nn.Eval, Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	found := map[float64]int{}
	for _, n := range m.Graph.AllNodes() {
		if o, ok := n.Op().(*nn.Op); ok {
			if norm, ok := o.Op().(op.GroupNorm); ok {
				found[norm.Eps]++
				if weights := strings.Contains(o.Layer(), "conv"); weights != (norm.Eps == 1e-8) {
					t.Errorf("%s has ε = %g", o.Layer(), norm.Eps)
				}
			}
		}
	}
	if found[1e-8] != 53 || found[1e-5] != 49 {
		t.Errorf("normalisations by ε: %v", found)
	}
}
