package network

import (
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

const hubJSON = `{"architecture": "mobilenetv3_large_100", "pretrained_cfg": {"input_size": [3, 192, 192], "crop_pct": 0.9,
	"interpolation": "bilinear", "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}}`

// timm's config.json says how images are prepared, and names the net if two nets have the same tensors.
func TestHubConfig(t *testing.T) {
	dev := cpuDevice(t, 1)
	n, err := New(dev, "mobilenetv3_large_100", nn.Config{Classes: 1000, Channels: 3, Size: 64}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	zeros(t, path, tensorList(t, filepath.Join("testdata", "timm_mobilenetv3_large.txt")))
	config := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := n.Load(path, LoadOptions{})
	if err != nil || !strings.Contains(l.Doubt, "tf_mobilenetv3_large_100") || l.Interpolation != "" {
		t.Errorf("without a config.json: %+v, %v", l, err)
	}
	if n.seen.Resize != 73 || n.seen.Interpolation != "bicubic" {
		t.Errorf("images of 64 pixels are prepared as %+v", n.seen)
	}
	for _, p := range []string{path, dir} {
		config(hubJSON)
		l, err = n.Load(p, LoadOptions{})
		m := l.Meta
		if err != nil || l.Doubt != "" || m.Model != "mobilenetv3_large_100" || m.ImageSize != 192 || m.ValResize != 213 ||
			m.Interpolation != "bilinear" || len(m.Mean) != 3 || m.Mean[2] != .3 || m.Std[0] != .2 {
			t.Errorf("%s: %+v, %v", p, l, err)
		}
		for name, want := range map[string]string{"tf_mobilenetv3_large_100": ": give the model tf_mobilenetv3_large_100",
			"tf_mobilenetv3_large_minimal_200": "whose layers differ from those of mobilenetv3_large_100"} {
			config(strings.Replace(hubJSON, "mobilenetv3_large_100", name, 1))
			_, err = n.Load(p, LoadOptions{})
			if err == nil || !strings.Contains(err.Error(), "timm's "+name) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v", p, err)
			}
		}
	}
	for mode, want := range map[string]string{"squash": `crop_mode "squash"`, "border": `crop_mode "border"`, "center": ""} {
		config(strings.Replace(hubJSON, `"crop_pct"`, `"crop_mode": "`+mode+`", "crop_pct"`, 1))
		l, err := n.Load(path, LoadOptions{})
		if got := l.Uncropped(); err != nil || !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("crop_mode %s: %q, %v", mode, got, err)
		}
	}
	for _, other := range []string{`{"model": "resnet50"}`, "{", `{"architecture": 3}`} {
		config(other)
		if l, err = n.Load(path, LoadOptions{}); err != nil || l.Doubt == "" || l.Model != "" {
			t.Errorf("with %s: %+v, %v", other, l, err)
		}
	}

	// Weights of torchvision are the other net's.
	m, err := nn.Build("mobilenet_v3_large", nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	for _, e := range m.StateDict() {
		list = append(list, safetensors.Tensor{Name: e.Name, DType: safetensors.F32, Shape: e.Shape})
	}
	zeros(t, path, list)
	if _, err := n.Load(path, LoadOptions{}); err == nil {
		t.Error("mobilenetv3_large_100 takes torchvision's weights, which have another ε")
	}
}

// Weights of one of timm's nets that is not offered are refused by its name; if their tensors are a net's, its name is a
// doubt.
func TestUnoffered(t *testing.T) {
	const want = `its config.json says that the weights are of timm's resnetaa34d, which is not offered (rna models ` +
		`lists the nets that are)`
	n, err := New(cpuDevice(t, 1), "lenet", nn.Config{Classes: 10, Channels: 1, Size: 28}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	config := []byte(`{"architecture": "resnetaa34d"}`)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	zeros(t, path, []safetensors.Tensor{{Name: "stem.weight", DType: safetensors.F32, Shape: []int{1}}})
	if _, err := n.Load(path, LoadOptions{}); err == nil || !strings.Contains(err.Error(), "classes, as "+want+": ") {
		t.Errorf("tensors of another net: %v", err)
	}
	if m, err := ReadMeta(path); err != nil || m.Model != "" || m.Unoffered() != want {
		t.Errorf("%+v, %q, %v", m, m.Unoffered(), err)
	}
	if err := n.SaveVector(path, n.Params); err != nil {
		t.Fatal(err)
	}
	if l, err := n.Load(path, LoadOptions{}); err != nil || l.Doubt != "taken for weights of lenet, which have the same tensors: "+want {
		t.Errorf("its own tensors: %q, %v", l.Doubt, err)
	}
	for timm, net := range map[string]string{"vit_base_patch16_384": "vit_base_patch16_384", "regnetx_002": "regnetx_002",
		"efficientnet_b5": "timm_efficientnet_b5", "swin_base_patch4_window7_224": "swin_b", "vit_huge_patch14_384": "",
		"regnety_080_tv": "regnet_y_8gf", "mobilenetv2_110d": "mobilenetv2_110d", "resnet50t": "", "convnextv2_small": "",
		"": ""} {
		got, ok := hubNet(timm)
		if got != net || ok != (net != "") || (Meta{Architecture: timm}.Unoffered() != "") != (net == "" && timm != "") {
			t.Errorf("timm's %s is %q", timm, got)
		}
	}
}

// config.json names one of two nets with the same tensors; without it the net is the named one, and a doubt names the
// other. The refusal tells the net to give.
func TestTwins(t *testing.T) {
	for net, want := range map[string]string{
		"efficientnet_b0": "tf_efficientnet_b0", "tf_efficientnet_b4": "efficientnet_b4",
		"timm_efficientnet_b5": "tf_efficientnet_b5", "tf_efficientnet_b5": "timm_efficientnet_b5",
		"efficientnet_es": "tf_efficientnet_es", "tf_mixnet_l": "mixnet_l", "mixnet_xl": "",
		"mobilenetv4_conv_large": "mobilenetv4_conv_aa_large", "mobilenetv4_conv_blur_medium": "mobilenetv4_conv_medium",
		"efficientnet_lite0": "tf_efficientnet_lite0", "tf_efficientnet_lite4": "efficientnet_lite4",
		"tf_mobilenetv3_small_075": "mobilenetv3_small_075", "tf_mobilenetv3_large_075": "",
		"tf_mobilenetv3_small_100": "mobilenetv3_small_100", "mobilenetv3_large_100": "tf_mobilenetv3_large_100",
		"vit_base_patch32_clip_224": "vit_base_patch32_clip_quickgelu_224", "vit_base_patch32_224": "",
		"vit_base_patch32_clip_quickgelu_224": "vit_base_patch32_clip_224",
		"tf_efficientnet_b6":                  "", "tf_efficientnetv2_s": "", "efficientnet_b6": "", "mobilenet_v3_large": "",
	} {
		got := twin(net)
		_, err := nn.Lookup(want)
		if got != want || want != "" && err != nil {
			t.Errorf("the twin of %s is %q, %v; want %q", net, got, err, want)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	zeros(t, path, tensorList(t, filepath.Join("testdata", "timm_efficientnet_b0.txt")))
	dev := cpuDevice(t, 1)
	config := func(architecture string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(architecture), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	two := []string{"efficientnet_b0", "tf_efficientnet_b0"}
	for i, name := range two {
		other := two[1-i]
		n, err := New(dev, name, nn.Config{Classes: 1000, Channels: 3, Size: 32}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		config("{}")
		if l, err := n.Load(path, LoadOptions{}); err != nil || !strings.Contains(l.Doubt, "those of "+other+" have") {
			t.Errorf("%s without a name: %q, %v", name, l.Doubt, err)
		}
		config(`{"architecture": "` + name + `"}`)
		if l, err := n.Load(path, LoadOptions{}); err != nil || l.Doubt != "" || l.Model != name {
			t.Errorf("%s: %q, model %q, %v", name, l.Doubt, l.Model, err)
		}
		config(`{"architecture": "` + other + `"}`)
		if _, err := n.Load(path, LoadOptions{}); err == nil || !strings.HasSuffix(err.Error(), "give the model "+other) {
			t.Errorf("%s in %s: %v", other, name, err)
		}
	}
	for _, c := range []struct{ net, architecture, notes, want, doubt string }{
		{"vit_base_patch32_clip_224", "vit_base_patch32_clip_224", "", "vit_base_patch32_clip_224", ""},
		{"vit_base_patch32_clip_224", "", "", "", "those of vit_base_patch32_clip_quickgelu_224, with another activation"},
		{"vit_base_patch32_clip_quickgelu_224", "vit_base_patch32_clip_224", "natively QuickGELU, use quickgelu model variant",
			"vit_base_patch32_clip_quickgelu_224", ""},
		{"vit_base_patch32_clip_224", "vit_base_patch32_clip_224", "natively QuickGELU, use quickgelu model variant",
			"vit_base_patch32_clip_quickgelu_224", "for the activation of vit_base_patch32_clip_quickgelu_224"},
		{"vit_base_patch32_224", "", "", "", ""},
		{"swinv2_tiny_window8_256", "", "", "", "those for other windows"},
		{"swinv2_tiny_window8_256", "swinv2_tiny_window8_256", "", "swinv2_tiny_window8_256", ""},
		{"resnetaa50", "", "", "", "those of resnet50, which has strides"},
		{"resnetaa50", "resnetaa50", "", "resnetaa50", ""},
		{"resnetblur50", "", "", "", "those of resnet50, which has strides"},
		{"resnet50", "", "", "", ""},
		{"vit_base_patch16_gap_224", "", "", "", "those of vit_base_patch16_siglip_gap_224, with another number of heads"},
		{"vit_base_patch16_siglip_gap_224", "vit_base_patch16_siglip_gap_224", "", "vit_base_patch16_siglip_gap_224", ""},
	} {
		h := hubConfig{Architecture: c.architecture}
		h.Pretrained.Notes = []string{c.notes}
		var m Meta
		h.meta(&m)
		doubt, err := (&Network{arch: c.net}).sameNet(nil, m)
		if err != nil || m.Model != c.want || !strings.Contains(doubt, c.doubt) || (doubt == "") != (c.doubt == "") {
			t.Errorf("%+v: %q, %q, %v", c, m.Model, doubt, err)
		}
	}
	// Some doubts are of timm's names of tensors alone.
	open := func(tensor string) *statedict.File {
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, []safetensors.Tensor{{Name: tensor, DType: safetensors.F32, Shape: []int{1}}})
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	for _, c := range []struct{ net, tensor, doubt string }{
		{"vit_base_patch16_dinov3_qkvb", "reg_token", "those of vit_base_patch16_lingbot, with another input of the head"},
		{"vit_base_patch16_lingbot", "reg_token", "those of vit_base_patch16_dinov3_qkvb, with another input of the head"},
		{"vit_base_patch16_dinov3_qkvb", "storage_tokens", ""},
		{"efficientnet_b0", "conv_stem.weight", "those of tf_efficientnet_b0 have the same names"},
		{"efficientnet_b0", "features.0.0.weight", ""},
	} {
		doubt, err := (&Network{arch: c.net}).sameNet(open(c.tensor), Meta{})
		if err != nil || !strings.Contains(doubt, c.doubt) || (doubt == "") != (c.doubt == "") {
			t.Errorf("%+v: %q, %v", c, doubt, err)
		}
	}
	// So does transformers'.
	for model, want := range map[string]string{"vit_base_patch32_clip_224": "",
		"vit_base_patch32_clip_quickgelu_224": "for the activation of vit_base_patch32_clip_quickgelu_224"} {
		doubt, err := (&Network{arch: "vit_base_patch32_clip_224"}).sameNet(nil, Meta{Model: model})
		if err != nil || !strings.Contains(doubt, want) || (doubt == "") != (want == "") {
			t.Errorf("%s: %q, %v", model, doubt, err)
		}
	}
	doubt, err := (&Network{arch: "swinv2_tiny_window8_256"}).sameNet(nil, Meta{Kind: "swinv2"})
	if err != nil || doubt != "" {
		t.Errorf("transformers' Swin V2: %q, %v", doubt, err)
	}
	// Nets for images of another size have the same layers as a rule.
	for net, other := range map[string]string{"vit_base_patch16_224": "vit_base_patch16_384",
		"vit_large_patch14_clip_quickgelu_224": "vit_large_patch14_clip_quickgelu_336",
		"vit_base_patch16_siglip_gap_224":      "vit_base_patch16_siglip_gap_512"} {
		if doubt, err := (&Network{arch: net}).sameNet(nil, Meta{Architecture: other}); err != nil || doubt != "" {
			t.Errorf("weights of %s in %s: %q, %v", other, net, doubt, err)
		}
	}
	for net, other := range map[string]string{"vit_base_patch16_gap_224": "vit_base_patch16_siglip_gap_224",
		"vit_large_patch16_siglip_256": "vit_large_patch16_siglip_512",
		"resnet50":                     "resnetaa50", "resnetaa50": "resnetblur50", "resnetaa50d": "resnet50d",
		"swinv2_base_window16_256": "swinv2_base_window12to16_192to256"} {
		_, err := (&Network{arch: net}).sameNet(nil, Meta{Architecture: other})
		if err == nil || !strings.HasSuffix(err.Error(), "give the model "+other) {
			t.Errorf("weights of %s in %s: %v", other, net, err)
		}
	}
	// config.json may name another net than one without a twin, too.
	n := &Network{arch: "tf_efficientnetv2_s"}
	if _, err := n.sameNet(nil, Meta{Architecture: "efficientnetv2_s"}); err == nil ||
		!strings.HasSuffix(err.Error(), "whose layers differ from those of tf_efficientnetv2_s") {
		t.Error(err)
	}
	c := hubConfig{Architecture: "efficientnet_b5"}
	var m Meta
	if c.meta(&m); m.Model != "timm_efficientnet_b5" {
		t.Errorf("timm's efficientnet_b5 is %q", m.Model)
	}
}

// TestTimm compares probabilities with those of timm's nets, in the folder that ONLINERNA_TIMM names, which
// nn/zoo/testdata/timm_files.py writes.
func TestTimm(t *testing.T) {
	folder := os.Getenv("ONLINERNA_TIMM")
	if folder == "" {
		t.Skip("ONLINERNA_TIMM names no folder")
	}
	dirs, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no nets in %s, %v", folder, err)
	}
	dev := cpuDevice(t, 2)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			f, err := statedict.Open(dir, "")
			if err != nil {
				t.Fatal(err)
			}
			meta, err := MetaOf(f)
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
			n, err := New(dev, meta.Model, meta.Config(10, 3), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			if l, err := n.Load(dir, LoadOptions{}); err != nil || l.Doubt != "" {
				t.Fatal(l.Doubt, err)
			}
			r, err := os.Open(filepath.Join(dir, "image.png"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			img, err := png.Decode(r)
			if err != nil {
				t.Fatal(err)
			}
			var want []float64
			if b, err := os.ReadFile(filepath.Join(dir, "probabilities.json")); err != nil || json.Unmarshal(b, &want) != nil {
				t.Fatal(err)
			}
			got, err := n.Predict(img, nil)
			if err != nil || len(got) != len(want) {
				t.Fatal(got, err)
			}
			worst := 0.
			for i, p := range got {
				worst = max(worst, math.Abs(math.Log(p)-math.Log(want[i])))
			}
			t.Logf("logarithms are off by %.1e at most, of %v", worst, want[:3])
			if !(worst < 1e-3) {
				t.Errorf("probabilities %v, want %v", got, want)
			}
		})
	}
}

// The files that transformers put beside a ResNet name the net, its classes, and how it takes images.
func TestTransformersConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	zeros(t, path, []safetensors.Tensor{{Name: "x", DType: safetensors.F32, Shape: []int{1}}})
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("preprocessor_config.json", `{"size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3,
		"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}`)
	_, photos := data.ImageNetClasses()
	var labels []string
	for i, name := range photos {
		labels = append(labels, fmt.Sprintf(`"%d": "%s, and more"`, i, name))
	}
	for text, want := range map[string]struct {
		model   string
		classes []string
	}{
		`"layer_type": "basic", "depths": [2, 2, 2, 2], "id2label": {"1": "dog", "0": "cat"}`: {"resnet18", []string{"cat", "dog"}},
		`"depths": [2, 2, 2, 2]`: {model: "resnet26"},
		`"depths": [3, 8, 36, 3], "id2label": {"0": "LABEL_0", "1": "LABEL_1"}`:                {"resnet152", nil},
		`"layer_type": "bottleneck", "depths": [3, 4, 6, 4], "id2label": {"0": "a", "2": "b"}`: {},
		`"depths": [3, 4, 6, 3], "id2label": {` + strings.Join(labels, ", ") + "}":             {"resnet50", nil},
	} {
		write("config.json", `{"model_type": "resnet", `+text+"}")
		m, err := ReadMeta(path)
		if err != nil || m.Model != want.model || !slices.Equal(m.Classes, want.classes) || m.ImageSize != 224 ||
			m.ValResize != 256 || m.Interpolation != "bicubic" || m.Mean[2] != .3 || m.Std[0] != .4 {
			t.Errorf("%.80s: %+v, %v", text, m, err)
		}
	}
	write("preprocessor_config.json", `{"size": 384, "crop_pct": 0.875, "resample": 2}`)
	if m, err := ReadMeta(path); err != nil || m.ImageSize != 384 || m.ValResize != 384 || m.Interpolation != "bilinear" ||
		m.CropMode != "squash" {
		t.Errorf("384 pixels: %+v, %v", m, err)
	}
	write("config.json", `{"model_type": "bit"}`)
	if m, err := ReadMeta(path); err != nil || m.Model != "" || m.ImageSize != 0 {
		t.Errorf("another net: %+v, %v", m, err)
	}
	const (
		next   = `"hidden_sizes": [96, 192, 384, 768], "depths": `
		nextv2 = `"depths": [3, 3, 9, 3], "hidden_sizes": `
		window = `"window_size": 7, "embed_dim": `
		square = `"size": {"height": 256, "width": 256}, "crop_size": null, "do_center_crop": null`
		edge   = `"resample": 3, "crop_pct": 0.875, "size": {"shortest_edge": `
	)
	const base = `"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "patch_size": `
	for _, c := range []struct {
		config, processor, model string
		size, resize             int
		filter, mode             string
	}{
		{`"vit", ` + base + "16", `"size": 224`, "vit_base_patch16_224", 224, 224, "bilinear", "squash"},
		{`"vit", ` + base + "32", `"size": {"height": 384, "width": 384}, "crop_pct": 0.9, "resample": 3`, "vit_base_patch32_224",
			384, 384, "bicubic", "squash"},
		{`"vit", ` + base + "12", `"size": {"height": 384, "width": 224}`, "", 0, 0, "bilinear", ""},
		{`"vit", ` + base + `16, "num_hidden_layers": 13`, "", "", 0, 0, "bilinear", ""},
		{`"deit", ` + base + "16", `"size": 256, "crop_size": 224, "resample": 3`, "deit_base_distilled_patch16_224", 224, 256,
			"bicubic", "squash"},
		{`"dinov2", ` + base + "14", `"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}`,
			"vit_base_patch14_dinov2", 224, 256, "", ""},
		{`"dinov2", ` + base + "14", `"size": {"shortest_edge": 256}, "crop_size": 224, "do_center_crop": false`,
			"vit_base_patch14_dinov2", 256, 256, "", ""},
		{`"dinov3_vit", ` + base + "16", square, "vit_base_patch16_dinov3_qkvb", 256, 256, "bilinear", "squash"},
		{`"dinov3_vit", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "patch_size": 16, ` +
			`"use_gated_mlp": true`, square, "vit_small_plus_patch16_dinov3_qkvb", 256, 256, "bilinear", "squash"},
		{`"dinov3_vit", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32, "patch_size": 16, ` +
			`"use_gated_mlp": true`, square, "vit_7b_patch16_dinov3", 256, 256, "bilinear", "squash"},
		{`"dinov3_convnext", ` + next + "[3, 3, 9, 3]", square, "convnext_tiny", 256, 256, "bilinear", "squash"},
		{`"dinov2_with_registers", ` + base + "14", `"size": {"shortest_edge": 256}, "crop_size": 224`,
			"vit_base_patch14_reg4_dinov2", 224, 256, "", ""},
		{`"dinov2_with_registers", "num_register_tokens": 0, ` + base + "14", "", "", 0, 0, "", ""},
		{`"clip", "vision_config": {` + base + `32, "hidden_act": "gelu"}`, `"size": 224, "crop_size": 224, "resample": 3`,
			"vit_base_patch32_clip_224", 224, 224, "bicubic", ""},
		{`"siglip_vision_model", ` + base + "16", `"size": 224`, "vit_base_patch16_siglip_224", 224, 224, "", ""},
		{`"dinov2", ` + base + "14", `"size": 256, "crop_size": 224`, "vit_base_patch14_dinov2", 224, 256, "", ""},
		{`"clip", "vision_config": {"patch_size": 16}`, `"size": {"shortest_edge": 224}, "crop_size": 224`,
			"vit_base_patch16_clip_quickgelu_224", 224, 224, "", ""},
		{`"beit", ` + base + `16, "image_size": 224`, `"size": 224, "crop_size": 224, "do_center_crop": false, "resample": 2`,
			"beit_base_patch16_224", 224, 224, "bilinear", "squash"},
		{`"data2vec-vision", ` + base + `16, "image_size": 384`, `"size": {"height": 384, "width": 384}, "resample": 3`,
			"beit_base_patch16_384", 384, 384, "bicubic", "squash"},
		{`"beit", ` + base + `16, "image_size": 512`, "", "", 0, 0, "", ""},
		{`"clip", "text_config": {}`, "", "", 0, 0, "", ""},
		{`"clip_vision_model", ` + base + `16, "hidden_act": "quick_gelu"`, `"size": {"shortest_edge": 224}`,
			"vit_base_patch16_clip_quickgelu_224", 224, 224, "", ""},
		{`"siglip", "vision_config": {"model_type": "siglip_vision_model"}`, `"size": {"height": 224, "width": 224}, "resample": 3`,
			"vit_base_patch16_siglip_224", 224, 224, "bicubic", "squash"},
		{`"siglip", "vision_config": {` + base + `16, "image_size": 512}`, "", "vit_base_patch16_siglip_512", 0, 0, "", ""},
		{`"siglip", "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14,
			"image_size": 384}`, "", "vit_so400m_patch14_siglip_384", 0, 0, "", ""},
		{`"siglip_vision_model", ` + base + `16, "image_size": [224, 224]`, "", "", 0, 0, "", ""},
		{`"siglip"`, "", "", 0, 0, "", ""},
		{`"clip_vision_model", ` + base + `16, "hidden_act": "relu"`, "", "", 0, 0, "", ""},
		{`"convnext", ` + next + "[3, 3, 9, 3]", edge + "224}", "convnext_tiny", 224, 256, "bicubic", ""},
		{`"convnext", ` + next + "[3, 3, 27, 3]", edge + "384}", "convnext_small", 384, 384, "bicubic", "squash"},
		{`"convnext", ` + next + "[3, 3, 27, 4]", edge + "224}", "", 224, 256, "bicubic", ""},
		{`"convnextv2", ` + nextv2 + "[96, 192, 384, 768]", edge + "384}", "convnextv2_tiny", 384, 384, "bicubic", "squash"},
		{`"convnextv2", "hidden_sizes": [40, 80, 160, 320], "depths": [2, 2, 6, 2]`, edge + "224}", "convnextv2_atto", 224, 256,
			"bicubic", ""},
		{`"convnextv2", ` + nextv2 + "[]", edge + "224}", "", 224, 256, "bicubic", ""},
		{`"swin", ` + window + `96, "depths": [2, 2, 6, 2]`, `"size": 224, "resample": 3`, "swin_t", 224, 224, "bicubic",
			"squash"},
		{`"swin", ` + window + `128, "depths": [2, 2, 18, 2]`, `"size": {"height": 224, "width": 224}`, "swin_b", 224, 224,
			"bilinear", "squash"},
		{`"swin", ` + window + `128, "depths": [2, 2, 18, 2], "window_size": 12`, `"size": 384`, "", 384, 384, "bilinear",
			"squash"},
	} {
		write("config.json", `{"model_type": `+c.config+"}")
		write("preprocessor_config.json", "{"+c.processor+"}")
		m, err := ReadMeta(path)
		if err != nil || m.Model != c.model || m.ImageSize != c.size || m.ValResize != c.resize || m.Interpolation != c.filter ||
			m.CropMode != c.mode {
			t.Errorf("%s, %s: %+v, %v", c.config, c.processor, m, err)
		}
	}
	// A processor of images and text has that of images within; older files of the name do not.
	write("config.json", `{"model_type": "clip_vision_model"}`)
	write("preprocessor_config.json", `{"size": 240, "crop_size": 224}`)
	for text, want := range map[string]int{`{"image_processor": {"size": {"shortest_edge": 256}, "crop_size": 224}}`: 256,
		`{"image_processor": null}`: 240, `{"image_processor": 3}`: 240, `{"processor_class": "CLIPProcessor"}`: 240} {
		write("processor_config.json", text)
		if m, err := ReadMeta(path); err != nil || m.ImageSize != 224 || m.ValResize != want {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}

// timm's config.json may name the classes.
func TestLabelsOfTimm(t *testing.T) {
	for labels, want := range map[string][]string{`["cat", "dog"]`: {"cat", "dog"}, `"imagenet"`: nil, `[]`: nil, `null`: nil} {
		var c hubConfig
		if err := json.Unmarshal([]byte(`{"architecture": "resnet18", "label_names": `+labels+`}`), &c); err != nil {
			t.Fatal(err)
		}
		var m Meta
		if c.meta(&m); !slices.Equal(m.Classes, want) || m.Model != "resnet18" {
			t.Errorf("%s: %q of %s", labels, m.Classes, m.Model)
		}
	}
}
