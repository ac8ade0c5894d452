package network

import (
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

// transformersConfig is the config.json that Hugging Face's transformers put beside the weights of a ResNet or a vision
// transformer.
type transformersConfig struct {
	Type   string            `json:"model_type"` // resnet, vit, deit or dinov2; other nets have other names of tensors
	Layer  string            `json:"layer_type"` // bottleneck if ""
	Depths []int             `json:"depths"`     // blocks by stage
	Labels map[string]string `json:"id2label"`   // names of the classes, by index

	Width int `json:"hidden_size"`
	Depth int `json:"num_hidden_layers"`
	Heads int `json:"num_attention_heads"`
	Patch int `json:"patch_size"`
}

// imageProcessor is the preprocessor_config.json beside it.
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
}

// UnmarshalJSON reads either form.
func (e *extent) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &e.pixels) == nil {
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
}

// net is the net's name, "" if it is not offered.
func (c *transformersConfig) net() string {
	size := transformersViTs[[3]int{c.Width, c.Depth, c.Heads}]
	name := ""
	switch c.Type {
	case "resnet":
		return transformersResNets[fmt.Sprint(cmp.Or(c.Layer, "bottleneck"), " ", c.Depths)]
	case "vit":
		name = fmt.Sprintf("vit_%s_patch%d_224", size, c.Patch)
	case "deit":
		name = fmt.Sprintf("deit_%s_distilled_patch%d_224", size, c.Patch)
	case "dinov2":
		name = fmt.Sprintf("vit_%s_patch%d_dinov2", size, c.Patch)
	}
	if _, err := nn.Lookup(name); err != nil {
		return ""
	}
	return name
}

// bilinear is PIL's number of the filter that is ViT's default.
const bilinear = 2

// resampling are the names of PIL's filters.
var resampling = map[int]string{bilinear: "bilinear", 3: "bicubic"}

// meta completes the metadata of weights in a folder.
func (c *transformersConfig) meta(dir string, m *Meta) error {
	if !slices.Contains([]string{"resnet", "vit", "deit", "dinov2"}, c.Type) {
		return nil
	}
	if m.Model == "" {
		m.Model = c.net()
	}
	if names := c.names(); m.Classes == nil && names != nil {
		m.Classes = names
	}
	p := imageProcessor{Crops: true}
	if c.Type == "vit" {
		p.Filter = bilinear
	}
	if found, err := readHub(filepath.Join(dir, "preprocessor_config.json"), &p); err != nil || !found {
		return err
	}
	// Smaller images are resized first, and their centre is cropped.
	const small = 384
	if size := p.Size.pixels; m.ImageSize == 0 && size > 0 {
		m.ImageSize, m.ValResize = size, size
		switch {
		case c.Type == "resnet" && size < small && p.Part > 0 && p.Part <= 1:
			m.ValResize = int(math.Floor(float64(size) / p.Part))
		case c.Type != "resnet" && p.Crops && p.Crop.pixels > 0:
			m.ImageSize = p.Crop.pixels
		}
		if c.Type != "resnet" && !p.Size.shortest {
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
