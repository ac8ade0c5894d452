package network

import (
	_ "embed"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

//go:embed testdata/freeze.json
var freezeLosses []byte

// TestFreezeAsPyTorch repeats training in PyTorch with frozen layers and BatchNorm, the head's own rate and layer
// decay.
func TestFreezeAsPyTorch(t *testing.T) {
	var g struct {
		Size, Batch, Classes     int
		Rate, Head, Layer, Decay float64
		Freeze                   []string
		Losses                   []float64
		Sums                     map[string]float64
	}
	if err := json.Unmarshal(freezeLosses, &g); err != nil {
		t.Fatal(err)
	}
	for _, dev := range []struct {
		device.Device
		tolerance float64
	}{{reference(op.Float64), 1e-10}, {cpuDevice(t, 2), 2e-4}} {
		n, err := New(dev, "conv6", nn.Config{Classes: g.Classes, Channels: 1, Size: g.Size, Mean: []float64{0},
			Std: []float64{1}, Freeze: g.Freeze}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		formulas(t, n, 0)
		o := optim.SGD{Momentum: .9, Decay: g.Decay}
		u := device.Update{Optimizer: o, Tensors: n.Tensors(), Factors: n.Factors(Rates{Head: g.Head / g.Rate,
			LayerDecay: g.Layer}),
			State: []device.Vector{vector(t, n)}}
		for step, want := range g.Losses {
			u.Numbers = device.Numbers{Rate: g.Rate / float64(1+step), Step: float64(step + 1)}
			p, err := n.Start(integers(g.Batch, g.Size, g.Classes, step), StepOptions{Update: u, StatsMomentum: .1})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := p.Wait()
			if err != nil || math.Abs(got-want) > dev.tolerance*want {
				t.Errorf("on %s: loss before step %d is %v, %v; want %v", dev.Name(), step+1, got, err, want)
			}
		}
		for i, s := range n.params {
			same(t, dev.Name(), s.name, n, n.Params, s, g.Sums[s.name], dev.tolerance)
			layer, _, _ := strings.Cut(s.name, ".")
			if frozen := n.model.Params[i].Frozen; frozen != slices.Contains(g.Freeze, layer+".*") {
				t.Errorf("%s: frozen %v", s.name, frozen)
			}
		}
		for _, s := range n.stats {
			same(t, dev.Name(), s.name+".running", n, n.Stats, s, g.Sums[s.name+".running"], dev.tolerance)
		}
	}
}

// formulas sets weights and statistics to formulas of integers, which count from first.
func formulas(t *testing.T, n *Network, first int) {
	t.Helper()
	formula := func(x []float64, k int) {
		for i := range x {
			x[i] = float64((i*37+k*11)%127-63) / 512
		}
	}
	for k, s := range n.params {
		x := op.New(op.T(op.Float64, s.typ.Shape...))
		d := x.Data.([]float64)
		formula(d, first+k)
		for i := range d {
			if strings.HasPrefix(s.name, "bn") && strings.HasSuffix(s.name, "weight") {
				d[i]++
			}
		}
		if err := n.upload(n.Params, s, x); err != nil {
			t.Fatal(err)
		}
	}
	for k, s := range n.stats {
		x := op.New(op.T(op.Float64, s.typ.Shape...))
		mean, variance := row(x, 0).([]float64), row(x, 1).([]float64)
		formula(mean, first+101+k)
		formula(variance, first+201+k)
		for i := range variance {
			variance[i]++
		}
		if err := n.upload(n.Stats, s, x); err != nil {
			t.Fatal(err)
		}
	}
}

// same compares a tensor's sum.
func same(t *testing.T, dev, name string, n *Network, v device.Vector, s slot, want, tolerance float64) {
	t.Helper()
	x := op.New(op.T(n.Device.DType(), s.typ.Shape...))
	if err := n.download(x, v, s); err != nil {
		t.Fatal(err)
	}
	sum, size := 0., 1.
	add := func(a float64) { sum, size = sum+a, size+math.Abs(a) }
	switch d := x.Data.(type) {
	case []float32:
		for _, a := range d {
			add(float64(a))
		}
	case []float64:
		for _, a := range d {
			add(a)
		}
	}
	if math.Abs(sum-want) > tolerance*size {
		t.Errorf("on %s: %s sums to %v, want %v", dev, name, sum, want)
	}
}

func TestLayerDepths(t *testing.T) {
	for arch, want := range map[string]map[string]int{
		"resnet18": {"conv1.weight": 0, "bn1.weight": 0, "bn1.bias": 0, "layer1.0.conv1.weight": 1,
			"layer2.0.downsample.0.weight": 3,
			"layer2.0.downsample.1.bias":   3, "layer4.1.bn2.bias": 8, "fc.weight": 9, "fc.bias": 9},
		"vit_tiny_patch16_224": {"cls_token": 0, "pos_embed": 0, "patch_embed.proj.weight": 0, "patch_embed.proj.bias": 0,
			"blocks.0.norm1.weight": 1, "blocks.0.attn.qkv.weight": 1, "blocks.11.mlp.fc2.bias": 12, "norm.weight": 12,
			"norm.bias":   12,
			"head.weight": 13, "head.bias": 13},
		"vit_b_32": {"class_token": 0, "conv_proj.weight": 0, "encoder.pos_embedding": 0,
			"encoder.layers.encoder_layer_0.ln_1.weight": 1,
			"encoder.layers.encoder_layer_11.mlp.3.bias": 12, "encoder.ln.weight": 12, "heads.head.weight": 13},
		"deit_tiny_distilled_patch16_224": {"dist_token": 0, "blocks.11.mlp.fc2.bias": 12, "head.weight": 13,
			"head_dist.bias": 13},
		"vit_small_patch16_dinov3": {"reg_token": 0, "patch_embed.proj.bias": 0, "blocks.0.gamma_1": 1, "blocks.1.gamma_2": 2,
			"blocks.11.mlp.fc2.bias": 12, "norm.weight": 12, "head.bias": 13},
		"vit_base_patch16_siglip_224": {"pos_embed": 0, "blocks.11.norm1.bias": 12, "attn_pool.latent": 13,
			"attn_pool.q.weight": 13, "attn_pool.mlp.fc2.bias": 13, "head.weight": 14},
		"xcit_nano_12_p16_224": {"cls_token": 0, "patch_embed.proj.0.0.weight": 1, "patch_embed.proj.6.1.bias": 1,
			"blocks.0.gamma1": 2, "head.bias": 16},
		"repvgg_a0": {"stem.conv_kxk.conv.weight": 0, "stem.conv_1x1.bn.bias": 0, "stages.0.0.conv_kxk.conv.weight": 1,
			"head.fc.weight": 22},
		"hgnetv2_b4":      {"stem.stem1.conv.weight": 0, "stem.stem4.bn.bias": 0},
		"tiny_vit_5m_224": {"patch_embed.conv2.bn.bias": 0, "stages.0.blocks.0.conv1.conv.weight": 1},
		"fastvit_t8": {"stem.2.conv_kxk.0.bn.bias": 0, "stages.3.blocks.1.mlp.fc2.bias": 13,
			"final_conv.se.fc1.weight": 14, "final_conv.conv_scale.bn.bias": 14, "head.fc.bias": 15},
		"mobilenet_v3_large": {"features.0.0.weight": 0, "features.1.block.0.0.weight": 1,
			"features.15.block.3.1.bias": 15, "features.16.0.weight": 16, "classifier.0.weight": 17, "classifier.3.bias": 18},
		"mobilenetv3_large_100": {"conv_stem.weight": 0, "blocks.0.0.conv_dw.weight": 1, "blocks.5.2.bn3.bias": 15,
			"blocks.6.0.conv.weight": 16, "conv_head.weight": 17, "classifier.bias": 18},
		"convnext_atto_ols": {"stem.0.weight": 0, "stem.1.weight": 0, "stem.2.bias": 0, "stages.0.blocks.0.gamma": 1},
		"gcvit_xxtiny":      {"stem.conv1.weight": 0, "stem.down.conv_block.se.fc2.weight": 0, "stem.down.norm2.bias": 0},
		"nextvit_small":     {"stem.3.norm.bias": 0, "stages.0.blocks.0.norm.weight": 1},
		"coat_tiny": {"cls_token1": 0, "crpe1.conv_list.2.bias": 0, "serial_blocks1.1.mlp.fc2.bias": 2, "cls_token2": 3,
			"patch_embed2.norm.bias": 3, "crpe2.conv_list.0.weight": 3, "serial_blocks2.0.norm1.weight": 4,
			"serial_blocks4.1.mlp.fc2.bias": 11, "parallel_blocks.5.mlp2.fc2.bias": 17, "norm4.bias": 17,
			"aggregate.weight": 18, "head.bias": 19},
		"densenetblur121d": {"features.conv0.weight": 0, "features.norm2.bias": 0,
			"features.denseblock1.denselayer1.norm1.weight": 1, "features.transition1.conv.weight": 7, "classifier.bias": 62},
		"efficientvim_m1_dist": {"patch_embed.conv.0.conv.weight": 0, "stages.0.blocks.0.alpha": 1, "norm.3.bias": 8,
			"weights": 9, "weights_dist": 9, "heads.0.weight": 10, "heads_dist.3.bias": 10},
		"resnet26t": {"conv1.6.weight": 0, "bn1.bias": 0, "layer1.0.conv1.weight": 1, "fc.bias": 9},
		"lenet":     {"conv1.weight": 0, "conv1.bias": 0, "conv2.weight": 1, "fc1.bias": 2, "fc3.weight": 4},
	} {
		m, err := nn.Build(arch, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		depths := LayerDepths(m)
		for i, p := range m.Params {
			if d, ok := want[p.Name]; ok && d != depths[i] {
				t.Errorf("%s: %s has the depth %d, want %d", arch, p.Name, depths[i], d)
			}
		}
	}
}

// TestAllNormFrozen trains with all BatchNorm frozen; no statistics are re-estimated.
func TestAllNormFrozen(t *testing.T) {
	n, err := New(cpuDevice(t, 2), "conv6", nn.Config{Classes: 2, Channels: 3, Size: 8, Freeze: []string{"!fc.*"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	before := numbers(t, n.Stats)
	if n.HasStatistics() {
		t.Error("frozen statistics are restated")
	}
	if err := n.UpdateStats(noise(4, 8, 1), 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.Gradient(noise(4, 8, 1), .1); err != nil {
		t.Fatal(err)
	}
	near := numbers(t, n.Stats)
	for i := range near {
		if near[i] != before[i] {
			t.Fatal("frozen statistics have moved")
		}
	}
	for _, c := range []struct{ pattern, want string }{{"layer*", "no parameter has such a name"}, {"[", "syntax error"},
		{"*", "leave no parameter"}} {
		if _, err := New(n.Device, "conv6", nn.Config{Freeze: []string{c.pattern}}, 1); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", c.pattern, err)
		}
	}
}
