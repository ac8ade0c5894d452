package network

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data"
	"onlinerna/nn"
)

// transformersConfig is the config.json that Hugging Face's transformers put beside weights.
type transformersConfig struct {
	Type   string            `json:"model_type"` // a key of transformersNets; other nets have other names of tensors
	Layer  string            `json:"layer_type"` // bottleneck if ""
	Depths []int             `json:"depths"`     // blocks by stage
	Widths []int             `json:"hidden_sizes"`
	Labels map[string]string `json:"id2label"` // names of the classes, by index

	Width int  `json:"hidden_size"`
	Depth int  `json:"num_hidden_layers"`
	Heads int  `json:"num_attention_heads"`
	Patch int  `json:"patch_size"`
	Gated bool `json:"use_gated_mlp"` // DINOv3's with SwiGLU

	Embedding int `json:"embed_dim"` // Swin's first width
	Window    int `json:"window_size"`

	Registers  *int                `json:"num_register_tokens"` // DINOv2's; 4 if missing
	Activation string              `json:"hidden_act"`
	Vision     *transformersConfig `json:"vision_config"` // the image tower's, of CLIP and SigLIP
	Image      any                 `json:"image_size"`    // a number of BEiT's and SigLIP's
}

// imageProcessor is the preprocessor_config.json beside it, or a part of processor_config.json.
type imageProcessor struct {
	Size   extent    `json:"size"`
	Part   float64   `json:"crop_pct"`
	Crop   extent    `json:"crop_size"`
	Crops  bool      `json:"do_center_crop"` // true if missing
	Filter int       `json:"resample"`       // PIL's number
	Mean   []float64 `json:"image_mean"`
	Std    []float64 `json:"image_std"`
}

// extent is a number of pixels: itself, as older files have it, that of the shorter side, or height and width.
type extent struct {
	pixels   int
	shortest bool // it is the shorter side's
	bare     bool // it is a number alone
}

// UnmarshalJSON reads any form.
func (e *extent) UnmarshalJSON(b []byte) error {
	if e.bare = json.Unmarshal(b, &e.pixels) == nil; e.bare {
		return nil
	}
	var of struct {
		Edge   int `json:"shortest_edge"`
		Height int `json:"height"`
		Width  int `json:"width"`
	}
	err := json.Unmarshal(b, &of)
	if e.pixels = of.Edge; of.Edge > 0 {
		e.shortest = true
	} else if of.Height == of.Width {
		e.pixels = of.Height
	}
	return err
}

// transformersResNets are the nets by the kind of their blocks and the numbers of them.
var transformersResNets = map[string]string{
	"basic [2 2 2 2]":       "resnet18",
	"basic [3 4 6 3]":       "resnet34",
	"bottleneck [2 2 2 2]":  "resnet26",
	"bottleneck [3 4 6 3]":  "resnet50",
	"bottleneck [3 4 23 3]": "resnet101",
	"bottleneck [3 8 36 3]": "resnet152",
}

// transformersViTs are the sizes of vision transformers by width, depth and heads.
var transformersViTs = map[[3]int]string{
	{192, 12, 3}:   "tiny",
	{384, 12, 6}:   "small",
	{768, 12, 12}:  "base",
	{1024, 24, 16}: "large",
	{1280, 32, 20}: "huge", // DINOv3's
	{1280, 32, 16}: "huge",
	{1152, 27, 16}: "so400m",
	{1408, 40, 16}: "giant", // CLIP's
	{1536, 40, 24}: "giant", // DINOv2's
	{1536, 40, 16}: "giantopt",
	{1664, 48, 16}: "gigantic",
	{4096, 40, 32}: "7b",
}

// transformersConvNeXts are the sizes of ConvNeXts by the numbers of their blocks and the first width.
var transformersConvNeXts = map[string]string{
	"[2 2 6 2] 40":   "atto",
	"[2 2 6 2] 48":   "femto",
	"[2 2 6 2] 64":   "pico",
	"[2 2 8 2] 80":   "nano",
	"[3 3 9 3] 96":   "tiny",
	"[3 3 27 3] 96":  "small",
	"[3 3 27 3] 128": "base",
	"[3 3 27 3] 192": "large",
	"[3 3 27 3] 352": "huge",
}

// transformersSwins are the sizes of Swin transformers by the numbers of their blocks, the first width and the window.
var transformersSwins = map[string]string{"[2 2 6 2] 96 7": "t", "[2 2 18 2] 96 7": "s", "[2 2 18 2] 128 7": "b"}

// transformersNets give the name of a net of a type, which may be one that is not offered.
var transformersNets = map[string]func(c *transformersConfig) string{
	"resnet": func(c *transformersConfig) string {
		return transformersResNets[fmt.Sprint(cmp.Or(c.Layer, "bottleneck"), " ", c.Depths)]
	},
	"vit": func(c *transformersConfig) string { return fmt.Sprintf("vit_%s_patch%d_224", c.size(), c.Patch) },
	"deit": func(c *transformersConfig) string {
		return fmt.Sprintf("deit_%s_distilled_patch%d_224", c.size(), c.Patch)
	},
	"dinov2": func(c *transformersConfig) string { return fmt.Sprintf("vit_%s_patch%d_dinov2", c.size(), c.Patch) },
	"dinov3_vit": func(c *transformersConfig) string {
		size := c.size()
		if size == "7b" { // without biases
			return fmt.Sprintf("vit_7b_patch%d_dinov3", c.Patch)
		}
		if c.Gated {
			size += "_plus"
		}
		return fmt.Sprintf("vit_%s_patch%d_dinov3_qkvb", size, c.Patch)
	},
	"dinov2_with_registers": func(c *transformersConfig) string {
		registers := 4
		if c.Registers != nil {
			registers = *c.Registers
		}
		return fmt.Sprintf("vit_%s_patch%d_reg%d_dinov2", c.size(), c.Patch, registers)
	},
	"beit":                (*transformersConfig).beit,
	"data2vec-vision":     (*transformersConfig).beit,
	"clip":                func(c *transformersConfig) string { return c.Vision.clip() },
	"clip_vision_model":   (*transformersConfig).clip,
	"siglip":              func(c *transformersConfig) string { return c.Vision.siglip() },
	"siglip_vision_model": (*transformersConfig).siglip,
	"convnext":            (*transformersConfig).convNeXt,
	"convnextv2":          (*transformersConfig).convNeXt,
	"dinov3_convnext":     (*transformersConfig).convNeXt,
	"swin": func(c *transformersConfig) string {
		return "swin_" + transformersSwins[fmt.Sprint(c.Depths, c.Embedding, c.Window)]
	},
}

// size is that of a vision transformer.
func (c *transformersConfig) size() string {
	return transformersViTs[[3]int{c.Width, c.Depth, c.Heads}]
}

// beit is the net of a BEiT. The second version's layers are the same.
func (c *transformersConfig) beit() string {
	size, _ := c.Image.(float64)
	return fmt.Sprintf("beit_%s_patch%d_%d", c.size(), c.Patch, int(size))
}

// clip is the net of CLIP's image tower. Newer files leave out what is transformers' default.
func (c *transformersConfig) clip() string {
	d, ok := c.tower()
	if !ok {
		return ""
	}
	kind := map[string]string{"": "_quickgelu", "quick_gelu": "_quickgelu", "gelu": ""}
	act, ok := kind[d.Activation]
	if !ok {
		return ""
	}
	return fmt.Sprintf("vit_%s_patch%d_clip%s_224", d.size(), cmp.Or(d.Patch, 32), act)
}

// siglip is the net of SigLIP's image tower.
func (c *transformersConfig) siglip() string {
	d, ok := c.tower()
	size, given := d.Image.(float64)
	if !ok || !given && d.Image != nil {
		return ""
	}
	name, _ := hubNet(fmt.Sprintf("vit_%s_patch%d_siglip_%d", d.size(), cmp.Or(d.Patch, 16), int(cmp.Or(size, 224))))
	return name
}

// tower is a copy with the extents that files leave out.
func (c *transformersConfig) tower() (d transformersConfig, ok bool) {
	if c == nil {
		return d, false
	}
	d = *c
	d.Width, d.Depth, d.Heads = cmp.Or(d.Width, 768), cmp.Or(d.Depth, 12), cmp.Or(d.Heads, 12)
	return d, true
}

func (c *transformersConfig) convNeXt() string {
	if len(c.Widths) == 0 {
		return ""
	}
	return strings.TrimPrefix(c.Type, "dinov3_") + "_" + transformersConvNeXts[fmt.Sprint(c.Depths, c.Widths[0])]
}

// net is the net's name, "" if it is not offered.
func (c *transformersConfig) net() string {
	name := transformersNets[c.Type](c)
	if _, err := nn.Lookup(name); err != nil {
		return ""
	}
	return name
}

// bilinear is PIL's number of the filter that is the default of the processors of ViT, which Swin has, too, and DINOv3.
const bilinear = 2

// edged are the types whose processors take a number alone for the shorter side, not for both.
var edged = map[string]bool{"clip": true, "clip_vision_model": true, "siglip": true, "siglip_vision_model": true,
	"dinov2": true, "dinov2_with_registers": true}

// resampling are the names of PIL's filters.
var resampling = map[int]string{bilinear: "bilinear", 3: "bicubic"}

// meta completes the metadata of weights in a folder.
func (c *transformersConfig) meta(dir string, m *Meta) error {
	if transformersNets[c.Type] == nil {
		return nil
	}
	if m.Model == "" {
		m.Model = c.net()
	}
	if names := c.names(); m.Classes == nil && names != nil {
		m.Classes = names
	}
	p := imageProcessor{Crops: true}
	if c.Type == "vit" || c.Type == "swin" || strings.HasPrefix(c.Type, "dinov3_") {
		p.Filter = bilinear
	}
	parts := slices.Contains([]string{"resnet", "convnext", "convnextv2"}, c.Type) // they share a processor
	if found, err := p.read(dir); err != nil || !found {
		return err
	}
	if p.Size.bare && edged[c.Type] {
		p.Size.shortest = true
	}
	// The shared processor crops the centre of smaller images, and squashes larger ones to a square.
	const small = 384
	if size := p.Size.pixels; m.ImageSize == 0 && size > 0 {
		m.ImageSize, m.ValResize = size, size
		switch {
		case parts && size < small && p.Part > 0 && p.Part <= 1:
			m.ValResize = int(math.Floor(float64(size) / p.Part))
		case !parts && p.Crops && p.Crop.pixels > 0:
			m.ImageSize = p.Crop.pixels
		}
		if parts && size >= small || !parts && !p.Size.shortest {
			m.CropMode = "squash"
		}
	}
	if m.Interpolation == "" {
		m.Interpolation = resampling[p.Filter]
	}
	if m.Mean == nil && m.Std == nil && len(p.Mean) == 3 && len(p.Std) == 3 && slices.Min(p.Std) > 0 {
		m.Mean, m.Std = p.Mean, p.Std
	}
	return nil
}

// read reads a folder's processor. Processors of images and text, such as CLIP's, are in a file of their own since
// transformers 5.
func (p *imageProcessor) read(dir string) (found bool, err error) {
	var both struct {
		Image json.RawMessage `json:"image_processor"`
	}
	if _, err := readHub(filepath.Join(dir, "processor_config.json"), &both); err != nil {
		return false, err
	}
	if bytes.HasPrefix(both.Image, []byte("{")) && json.Unmarshal(both.Image, p) == nil {
		return true, nil
	}
	return readHub(filepath.Join(dir, "preprocessor_config.json"), p)
}

// names are the names of the classes, nil where they are missing, alike, or ImageNet's, which this program has.
func (c *transformersConfig) names() []string {
	names := make([]string, len(c.Labels))
	for key, name := range c.Labels {
		i, err := strconv.Atoi(key)
		if err != nil || name == "" || i < 0 || i >= len(names) || strings.HasPrefix(name, "LABEL_") {
			return nil
		}
		names[i] = name
	}
	_, photos := data.ImageNetClasses()
	if len(names) == len(photos) && strings.HasPrefix(names[0], photos[0]) {
		return nil
	}
	if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) < len(names) || len(names) == 0 {
		return nil
	}
	return names
}
