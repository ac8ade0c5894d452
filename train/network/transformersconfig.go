package network

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data"
)

// transformersConfig is the config.json that Hugging Face's transformers put beside the weights of a ResNet.
type transformersConfig struct {
	Type   string            `json:"model_type"` // resnet; other nets have other names of tensors
	Layer  string            `json:"layer_type"` // bottleneck if ""
	Depths []int             `json:"depths"`     // blocks by stage
	Labels map[string]string `json:"id2label"`   // names of the classes, by index
}

// imageProcessor is the preprocessor_config.json beside it.
type imageProcessor struct {
	Size   shortestEdge `json:"size"`
	Crop   float64      `json:"crop_pct"`
	Filter int          `json:"resample"` // PIL's number
	Mean   []float64    `json:"image_mean"`
	Std    []float64    `json:"image_std"`
}

// shortestEdge is a number of pixels: itself, as older files have it, or a field of an object.
type shortestEdge int

// UnmarshalJSON reads either form.
func (e *shortestEdge) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*int)(e)) == nil {
		return nil
	}
	var of struct {
		Edge int `json:"shortest_edge"`
	}
	err := json.Unmarshal(b, &of)
	*e = shortestEdge(of.Edge)
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

// resampling are the names of PIL's filters.
var resampling = map[int]string{2: "bilinear", 3: "bicubic"}

// meta completes the metadata of weights in a folder.
func (c *transformersConfig) meta(dir string, m *Meta) error {
	if c.Type != "resnet" {
		return nil
	}
	layer := c.Layer
	if layer == "" {
		layer = "bottleneck"
	}
	if m.Model == "" {
		m.Model = transformersResNets[fmt.Sprint(layer, " ", c.Depths)]
	}
	if names := c.names(); m.Classes == nil && names != nil {
		m.Classes = names
	}
	var p imageProcessor
	if found, err := readHub(filepath.Join(dir, "preprocessor_config.json"), &p); err != nil || !found {
		return err
	}
	// Smaller images are resized first, and their centre is cropped.
	const small = 384
	if size := int(p.Size); m.ImageSize == 0 && size > 0 {
		m.ImageSize, m.ValResize = size, size
		if size < small && p.Crop > 0 && p.Crop <= 1 {
			m.ValResize = int(math.Floor(float64(size) / p.Crop))
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
