package network

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// TestNames reads lists of other programs' tensors: each identifies the wanted nets, also to users who load it in
// another one.
func TestNames(t *testing.T) {
	other := open(t, cpuDevice(t, 1), "lenet", 1)
	for file, want := range map[string]string{
		"densenet121_files.txt":                               "densenet121", // the names of torchvision's file, not of its code
		"huggingface_resnet18.txt":                            "resnet18",
		"huggingface_resnet50.txt":                            "resnet50",
		"huggingface_vit_base_patch16_224.txt":                "deit_base_patch16_224 or vit_base_patch16_224",
		"huggingface_deit_small_distilled_patch16_224.txt":    "deit_small_distilled_patch16_224",
		"huggingface_vit_small_patch14_dinov2.txt":            "vit_small_patch14_dinov2", // without a head
		"huggingface_vit_small_patch14_reg4_dinov2.txt":       "vit_small_patch14_reg4_dinov2",
		"huggingface_vit_base_patch32_clip_quickgelu_224.txt": "vit_base_patch32_clip_224 or vit_base_patch32_clip_quickgelu_224",
		"huggingface_vit_base_patch16_clip_224.txt":           "vit_base_patch16_clip_224 or vit_base_patch16_clip_quickgelu_224",
		"huggingface_beit_base_patch16_224.txt":               "beit_base_patch16_224 or beitv2_base_patch16_224",
		"huggingface_data2vec_vision_base.txt":                "beit_base_patch16_224 or beitv2_base_patch16_224",
		"huggingface_vit_small_patch16_dinov3_qkvb.txt":       "vit_small_patch16_dinov3_qkvb",
		"huggingface_vit_small_plus_patch16_dinov3_qkvb.txt":  "vit_small_plus_patch16_dinov3_qkvb",
		"huggingface_convnext_tiny_dinov3.txt":                "convnext_tiny",
		"huggingface_vit_base_patch16_siglip_256.txt":         "vit_base_patch16_siglip_256",
		"huggingface_vit_base_patch32_siglip_256.txt":         "vit_base_patch32_siglip_256",
		"huggingface_convnext_tiny.txt":                       "convnext_tiny",
		"huggingface_convnextv2_atto.txt":                     "convnextv2_atto",
		"huggingface_swin_t.txt":                              "swin_t",
		"timm_efficientnet_b0.txt":                            "efficientnet_b0 or tf_efficientnet_b0",
		"timm_convnext_tiny.txt":                              "convnext_tiny",
		"timm_swin_t.txt":                                     "swin_t",
		"timm_mobilenetv3_large.txt":                          "mobilenetv3_large_100 or tf_mobilenetv3_large_100",
		"timm_regnet_y_400mf.txt":                             "regnet_y_400mf",
		"timm_mobilenet_v2.txt":                               "mobilenet_v2",
		"timm_mnasnet1_0.txt":                                 "mnasnet1_0",
		"timm_vgg11_bn.txt":                                   "vgg11_bn",
		"torchvision_googlenet.txt":                           "googlenet", // with auxiliary heads
		"torchvision_inception_v3.txt":                        "inception_v3",
	} {
		list := tensorList(t, filepath.Join("testdata", file))
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, list)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		names := strings.Split(want, " or ")
		if got := Identify(f); !slices.Equal(got, names) {
			t.Errorf("%s is of %v, want %q", file, got, want)
		}
		for _, name := range names {
			m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
			if err != nil {
				t.Fatal(err)
			}
			headless := strings.Contains(file, "_dinov") || strings.Contains(name, "_clip_") || strings.Contains(name, "_siglip_")
			if n := Outputs(f, m); n != 1000 && !headless {
				t.Errorf("%s has %d outputs", file, n)
			}
		}
		_, err = other.Load(path, LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), "as their tensors are those of "+want+": give that model") {
			t.Errorf("%s in lenet: %v", file, err)
		}
		f.Close()
	}
}

// Files of those who trained a net have names of their own: each identifies it.
func TestNamesOfAuthors(t *testing.T) {
	facebook := [][2]string{{`^reg_token`, "storage_tokens"}, {`gamma_([12])`, "ls$1.gamma"}, {`fc1_g`, "w1"}, {`fc1_x`, "w2"},
		{`(attn\.)q_bias`, "${1}qkv.bias=3"}, {`.*v_bias|^head.*`, ""}}
	gated := slices.Insert(slices.Clone(facebook), 0, [2]string{`fc2`, "w3"})
	tower := [][2]string{{`^head.*`, ""}, {`q_proj\.bias`, "q_bias"}, {`v_proj\.bias`, "v_bias"},
		{`attn\.norm`, "attn.inner_attn_ln"}, {`mlp\.norm`, "mlp.ffn_ln"}, {`fc1_g`, "w1"}, {`fc1_x`, "w2"}, {`fc2`, "w3"}, {`^`, "visual."}}
	encoder := [][2]string{{`^head.*`, ""}, {`attn_pool\.q\.(.*)`, "attn_pool.attn.in_proj_$1=3"}, {`attn_pool\.kv.*`, ""},
		{`attn_pool\.proj`, "attn_pool.attn.out_proj"}, {`attn_pool\.norm`, "attn_pool.layernorm"}, {`latent`, "probe"},
		{`fc1`, "c_fc"}, {`fc2`, "c_proj"}, {`attn\.qkv\.`, "attn.in_proj_"}, {`attn\.proj`, "attn.out_proj"},
		{`norm_pre`, "ln_pre"}, {`^norm`, "ln_post"}, {`\.norm([12])`, ".ln_$1"}, {`gamma_([12])`, "ls_$1.gamma"},
		{`^blocks`, "transformer.resblocks"}, {`^cls_token`, "class_embedding"}, {`^pos_embed`, "positional_embedding"},
		{`patch_embed\.proj`, "conv1"}}
	sapiens := [][2]string{{`^head.*`, ""}, {`reg_token`, "storage_tokens"}, {`(patch_embed\.proj)`, "${1}ection"},
		{`attn\.([qkv])_proj`, "attn.w$1"}, {`gamma_1`, "attn.gamma.weight"}, {`mlp\.fc1`, "ffn.w12"},
		{`mlp\.fc2`, "ffn.w3"}, {`\.norm([12])\.`, ".ln$1."}, {`^norm`, "ln1"}}
	inner := [][2]string{{`^head.*`, ""}, {`^encoder\.`, ""}}
	beside := append(slices.Clone(encoder), [2]string{`^`, "visual."})
	for _, c := range []struct {
		net   string
		names [][2]string
		more  string
	}{
		{"vit_small_patch16_dinov3_qkvb", facebook, "rope_embed.periods"},
		{"vit_small_plus_patch16_dinov3_qkvb", gated, "mask_token"},
		{"eva02_base_patch16_clip_224", tower, "visual.rope.freqs_cos"},
		{"eva_giant_patch14_clip_224", [][2]string{{`^`, "visual."}}, "text.token_embedding.weight"},
		{"vit_pe_core_tiny_patch16_384", beside, "visual.proj"},
		{"vit_pe_core_tiny_patch16_384", encoder, "proj"},
		{"vit_pe_lang_large_patch14_448", encoder, "proj"},
		{"samvit_base_patch16", [][2]string{{`^head.*`, ""}, {`fc([12])`, "lin$1"}, {`^([bnp].*)`, "image_encoder.$1"}},
			"mask_decoder.iou_token.weight"},
		{"vit_base_patch16_sapiens2", sapiens, "mask_token"},
		{"qwen3_vit_88m", inner, "merger.fc1.weight"},
		{"deepseek_vit_412m", inner, "aligner.fc1.weight"},
	} {
		m, err := nn.Build(c.net, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		list := []safetensors.Tensor{{Name: c.more, DType: safetensors.BF16, Shape: []int{1}}}
		for _, e := range m.StateDict() {
			name, shape := e.Name, slices.Clone(e.Shape)
			for _, r := range c.names {
				name = regexp.MustCompile(r[0]).ReplaceAllString(name, r[1])
			}
			if part, ok := strings.CutSuffix(name, "=3"); ok {
				name, shape[0] = part, 3*shape[0]
				if mask := name + "_mask"; strings.Contains(c.net, "dinov3") {
					list = append(list, safetensors.Tensor{Name: mask, DType: safetensors.BF16, Shape: shape})
				}
			}
			if strings.Trim(name, "visual.") != "" {
				list = append(list, safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: shape})
			}
		}
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, list)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Identify(f); !slices.Equal(got, []string{c.net}) {
			t.Errorf("%s with the authors' names is %v", c.net, got)
		}
		f.Close()
	}
}

// torchvision's auxiliary heads are dropped, also under a prefix.
func TestAuxiliaryHeads(t *testing.T) {
	for _, name := range []string{"googlenet", "inception_v3"} {
		m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"", "model."} {
			list := tensorList(t, filepath.Join("testdata", "torchvision_"+name+".txt"))
			for i := range list {
				list[i].Name = prefix + list[i].Name
			}
			path := filepath.Join(t.TempDir(), "w.safetensors")
			zeros(t, path, list)
			f, err := statedict.Open(path, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := len(within(f, m).Tensors), len(m.StateDict()); got != want || len(list) == want {
				t.Errorf("%s: %d tensors, want %d of %d", name, got, want, len(list))
			}
			f.Close()
		}
	}
}

// tensorList reads names and shapes, one tensor a line.
func tensorList(t *testing.T, path string) (list []safetensors.Tensor) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		name, shape, _ := strings.Cut(s.Text(), " ")
		x := safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int{}}
		if strings.HasSuffix(name, "num_batches_tracked") {
			x.DType = safetensors.I64
		}
		for d := range strings.FieldsSeq(shape) {
			n, err := strconv.Atoi(d)
			if err != nil {
				t.Fatal(err)
			}
			x.Shape = append(x.Shape, n)
		}
		list = append(list, x)
	}
	return list
}

// Transformers' separate queries, keys and values become one tensor, in this order.
func TestSeparateQueries(t *testing.T) {
	n, err := New(cpuDevice(t, 1), "vit_tiny_patch16_224", nn.Config{Classes: 1000, Channels: 3, Size: 224}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var list []safetensors.Tensor
	for _, x := range tensorList(t, filepath.Join("testdata", "huggingface_vit_base_patch16_224.txt")) {
		x.Shape = slices.Clone(x.Shape)
		for i, d := range x.Shape { // of the tiny net
			x.Shape[i] = cmp.Or(map[int]int{768: 192, 3072: 768}[d], d)
		}
		list = append(list, x)
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		k := slices.IndexFunc([]string{".query.", ".key.", ".value."}, func(part string) bool {
			return strings.Contains(x.Name, part)
		})
		if err := w.Write(x.Name, slices.Repeat([]float32{float32(1 + k)}, x.Len())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Load(path, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range n.params {
		if !strings.Contains(s.name, ".attn.qkv.") {
			continue
		}
		found++
		x := op.New(s.typ)
		if err := n.download(x, n.Params, s); err != nil {
			t.Fatal(err)
		}
		third := s.n / 3
		for i, v := range x.Data.([]float32) {
			if v != float32(1+i/third) {
				t.Fatalf("%s has %v at %d of %d", s.name, v, i, s.n)
			}
		}
	}
	if found != 24 {
		t.Errorf("%d tensors", found)
	}
}

// If a part of a tensor is missing, the others keep the file's names, which errors show.
func TestMissingPart(t *testing.T) {
	m, err := nn.Build("vit_base_patch16_224", nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	const of = "vit.encoder.layer.0.attention.attention."
	list := tensorList(t, filepath.Join("testdata", "huggingface_vit_base_patch16_224.txt"))
	list = slices.DeleteFunc(list, func(x safetensors.Tensor) bool { return x.Name == of+"value.weight" })
	path := filepath.Join(t.TempDir(), "w.safetensors")
	zeros(t, path, list)
	f, err := statedict.Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var others []string
	g := within(f, m)
	for _, x := range g.Tensors {
		if !slices.ContainsFunc(m.Params, func(p nn.Param) bool { return p.Name == x.Name }) {
			others = append(others, x.Name)
		}
	}
	slices.Sort(others)
	if want := []string{of + "key.weight", of + "query.weight"}; !slices.Equal(others, want) {
		t.Errorf("names %q, want %q", others, want)
	}
	if _, ok := g.Lookup("blocks.0.attn.qkv.bias"); !ok {
		t.Error("the bias, whose parts are there, is missing")
	}
}

// Facebook's files of DINOv2 have a further tensor, which is dropped. Those with registers are of the net with
// registers.
func TestMaskToken(t *testing.T) {
	m, err := nn.Build("vit_small_patch14_dinov2", nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	list := []safetensors.Tensor{{Name: "mask_token", Shape: []int{1, 384}}}
	for _, e := range m.StateDict() {
		if !slices.Contains(Head(m), e.Name) {
			list = append(list, safetensors.Tensor{Name: e.Name, Shape: e.Shape})
		}
	}
	for _, c := range []struct {
		more []safetensors.Tensor
		want []string
	}{
		{nil, []string{"vit_small_patch14_dinov2"}},
		{[]safetensors.Tensor{{Name: "register_tokens", Shape: []int{1, 4, 384}}}, []string{"vit_small_patch14_reg4_dinov2"}},
	} {
		all := slices.Concat(list, c.more)
		for i := range all {
			all[i].DType = safetensors.F32
		}
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, all)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Identify(f); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
		f.Close()
	}
}

// Tensors of DINOv3 also have the names of transformers' code, which its files lack a prefix of.
func TestNamesOfCode(t *testing.T) {
	for file, want := range map[string]string{
		"huggingface_vit_small_patch16_dinov3_qkvb.txt": "vit_small_patch16_dinov3_qkvb",
		"huggingface_convnext_tiny_dinov3.txt":          "convnext_tiny",
	} {
		list := tensorList(t, filepath.Join("testdata", file))
		for i, x := range list {
			if strings.HasPrefix(x.Name, "layer.") || strings.HasPrefix(x.Name, "stages.") {
				list[i].Name = "model." + x.Name
			}
		}
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, list)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Identify(f); !slices.Equal(got, []string{want}) {
			t.Errorf("%s is of %v, want %s", file, got, want)
		}
		f.Close()
	}
}

// Queries, keys and values are the first, second and third part of a tensor.
func TestOrderOfParts(t *testing.T) {
	parts := regexp.MustCompile(`(query|key|value|[qkv]_proj)\\\..*@(\d)/3$`)
	found := 0
	for _, n := range namings {
		for _, r := range n.rules {
			if !strings.Contains(r.to, "@") {
				continue
			}
			found++
			m := parts.FindStringSubmatch(r.from.String() + r.to)
			if m == nil || m[2] != map[byte]string{'q': "1", 'k': "2", 'v': "3"}[m[1][0]] {
				t.Errorf("%v is %s", r.from, r.to)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d rules", found)
	}
}

// Microsoft's Swin transformers V2 merge patches behind a stage, timm's before the next.
func TestMergedBehind(t *testing.T) {
	const name = "swinv2_tiny_window8_256"
	m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	behind := strings.NewReplacer("layers.1.downsample", "layers.0.downsample", "layers.2.downsample", "layers.1.downsample",
		"layers.3.downsample", "layers.2.downsample", "head.fc", "head")
	none := strings.NewReplacer()
	for i, rename := range []*strings.Replacer{none, behind} {
		list := []safetensors.Tensor{{Name: "layers.0.blocks.1.attn_mask", DType: safetensors.F32, Shape: []int{64, 64, 64}}}
		for _, e := range m.StateDict() {
			list = append(list, safetensors.Tensor{Name: rename.Replace(e.Name), DType: safetensors.F32, Shape: e.Shape})
		}
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, list)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Identify(f); !slices.Contains(got, name) {
			t.Errorf("case %d: %v", i, got)
		}
		f.Close()
	}
}
