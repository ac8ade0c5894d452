package network

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"onlinerna/data/imaging"
	"onlinerna/internal/files"
	"onlinerna/nn"
	"onlinerna/train/statedict"
)

// hubConfig is the config.json that timm puts beside weights on Hugging Face's hub.
type hubConfig struct {
	Architecture string          // timm's name; "" in files of others, such as a run's
	Labels       json.RawMessage `json:"label_names"` // of all classes, as a rule a list
	Pretrained   struct {
		Size          [3]int     `json:"input_size"` // channels first
		Crop          float64    `json:"crop_pct"`
		Mode          string     `json:"crop_mode"`
		Interpolation string     `json:"interpolation"`
		Mean          [3]float64 `json:"mean"`
		Std           [3]float64 `json:"std"`
		Notes         []string   `json:"notes"`
	} `json:"pretrained_cfg"`
}

// hubNames are timm's names of nets that have others here.
var hubNames = map[string]string{"efficientnet_b5": "timm_efficientnet_b5"}

// maxHubConfig bounds such a file.
const maxHubConfig = 1 << 20

// hubMeta completes the metadata of weights by the files that timm and transformers put beside them.
func hubMeta(f *statedict.File, m *Meta) error {
	dir := f.Path
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		dir = filepath.Dir(dir)
	}
	var c struct {
		hubConfig
		transformersConfig
	}
	if found, err := readHub(filepath.Join(dir, "config.json"), &c); err != nil || !found {
		return err
	}
	if c.Architecture != "" {
		c.hubConfig.meta(m)
		return nil
	}
	return c.transformersConfig.meta(dir, m)
}

// readHub reads such a file. It does not find one that is missing or another program's.
func readHub(path string, to any) (found bool, err error) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxHubConfig {
		return false, nil
	}
	b, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && json.Unmarshal(b, to) == nil, err
}

// meta completes the metadata of weights: the net, and how it takes images.
func (c *hubConfig) meta(m *Meta) {
	m.Architecture = c.Architecture
	p := &c.Pretrained
	if slices.ContainsFunc(p.Notes, func(s string) bool { return strings.Contains(s, "natively QuickGELU") }) {
		m.Architecture = clips.ReplaceAllString(c.Architecture, "${1}_quickgelu$3")
	}
	if m.Model == "" {
		m.Model, _ = hubNet(m.Architecture)
	}
	var names []string
	if m.Classes == nil && json.Unmarshal(c.Labels, &names) == nil && len(names) > 1 {
		m.Classes = names
	}
	if p.Mode != "center" {
		m.CropMode = p.Mode
	}
	if size := p.Size[1]; m.ImageSize == 0 && size > 0 && size == p.Size[2] {
		m.ImageSize = size
		if p.Crop > 0 && p.Crop <= 1 {
			m.ValResize = int(math.Floor(float64(size) / p.Crop))
		}
	}
	if m.Interpolation == "" && slices.Contains(imaging.Interpolations(), p.Interpolation) {
		m.Interpolation = p.Interpolation
	}
	if m.Mean == nil && m.Std == nil && p.Size[0] == len(p.Mean) && p.Std[0] > 0 && p.Std[1] > 0 && p.Std[2] > 0 {
		m.Mean, m.Std = p.Mean[:], p.Std[:]
	}
}

// hubNet is the net that timm's name means; ok is false, and the name is empty, if there is none.
func hubNet(timm string) (name string, ok bool) {
	a, err := nn.Lookup(cmp.Or(hubNames[timm], timm))
	return a.Name, err == nil
}

// Uncropped warns that the weights take images in a way of timm's other than the crop of the centre; "" if they do not.
func (m Meta) Uncropped() string {
	if m.CropMode == "" {
		return ""
	}
	return fmt.Sprintf("the files beside the weights say crop_mode %q, in timm's words, for photographs that are not square: "+
		"in evaluation the net sees their centre here, and may do a little worse", m.CropMode)
}

// Unoffered says that there is no net for weights because config.json names one of timm's that is not offered, and that
// their tensors fit the given ones; "" if it does not.
func (m Meta) Unoffered(fit ...string) string {
	if _, ok := hubNet(m.Architecture); ok || m.Architecture == "" {
		return ""
	}
	s := fmt.Sprintf("its config.json says that the weights are of timm's %s, which is not offered (rna models lists the "+
		"nets that are)", m.Architecture)
	if len(fit) > 0 {
		s += fmt.Sprintf("; the tensors fit %s: --model %s tries it", strings.Join(fit, " and "), fit[0])
	}
	return s
}

// timms are nets of timm that share the names and shapes of their tensors; their own names differ by a prefix.
var timms = regexp.MustCompile(`^(tf_|timm_)?(efficientnet_(?:b[0-5]|lite[0-4]|e[sml])|mixnet_[sml]|` +
	`mobilenetv3_(?:(?:large|small)_100|small_075))$`)

// clips are timm's names of CLIP's image towers, which differ in their activation alone: OpenAI's weights are for the
// quick GELU, as the notes in their config.json say.
var clips = regexp.MustCompile(`^(vit_\w+_clip)(_quickgelu)?(_\d+)$`)

// sized finds timm's vision transformers, whose tensors but those of places are the same for all sizes of images: group 1
// is the name without the size.
var sized = regexp.MustCompile(`^((?:vit|deit3?|eva|eva02|xcit|aimv2|beit3|vitamin)_\w+)_\d{3}$`)

// tanhs are those whose activation differs from that for smaller images.
var tanhs = regexp.MustCompile(`^vit_large_patch16_siglip(_gap)?_512$`)

// kind is the name of a net without the size of its images, if its layers do not depend on it.
func kind(net string) string {
	if m := sized.FindStringSubmatch(net); m != nil && !tanhs.MatchString(net) {
		return m[1]
	}
	return net
}

// rival is a net whose tensors have the names and shapes of another's.
type rival struct{ net, by string } // by is the difference of their layers

// headInput is a difference of DINOv3's nets: the mean of the patches, or the class token.
const headInput = "input of the head"

// rivals are those of kinds of nets.
var rivals = map[string]rival{
	"vit_base_patch16_gap":             {"vit_base_patch16_siglip_gap_224", "number of heads"},
	"vit_base_patch16_siglip_gap":      {"vit_base_patch16_gap_224", "number of heads"},
	"vit_large_patch16_siglip":         {"vit_large_patch16_siglip_512", "activation"},
	"vit_large_patch16_siglip_512":     {"vit_large_patch16_siglip_384", "activation"},
	"vit_large_patch16_siglip_gap":     {"vit_large_patch16_siglip_gap_512", "activation"},
	"vit_large_patch16_siglip_gap_512": {"vit_large_patch16_siglip_gap_384", "activation"},
	"mobilenetv4_conv_medium":          {"mobilenetv4_conv_blur_medium", "way of taking strides"},
	"mobilenetv4_conv_blur_medium":     {"mobilenetv4_conv_medium", "way of taking strides"},
	"mobilenetv4_conv_large":           {"mobilenetv4_conv_aa_large", "way of taking strides"},
	"mobilenetv4_conv_aa_large":        {"mobilenetv4_conv_large", "way of taking strides"},
	"vit_small_patch16_lingbot":        {"vit_small_patch16_dinov3_qkvb", headInput},
	"vit_base_patch16_lingbot":         {"vit_base_patch16_dinov3_qkvb", headInput},
	"vit_large_patch16_lingbot":        {"vit_large_patch16_dinov3_qkvb", headInput},
	"vit_small_patch16_dinov3_qkvb":    {"vit_small_patch16_lingbot", headInput},
	"vit_base_patch16_dinov3_qkvb":     {"vit_base_patch16_lingbot", headInput},
	"vit_large_patch16_dinov3_qkvb":    {"vit_large_patch16_lingbot", headInput},
}

// windowed finds timm's Swin transformers V2, whose tensors are the same for all windows: group 1 is the size.
var windowed = regexp.MustCompile(`^(swinv2_[a-z]+)_window\d`)

// smoothed are timm's ResNets with other layers in place of strides, whose tensors are those of nets without.
var smoothed = regexp.MustCompile(`^((?:se)?resne(?:t|xt))(?:aa|blur)(\d.*)$`)

// unsmoothed is the net whose tensors a smoothed net has, or net itself.
func unsmoothed(net string) string { return smoothed.ReplaceAllString(net, "$1$2") }

// twin names the other net of timm whose tensors have the names and shapes of net's, "" without one.
func twin(net string) string {
	if other := rivals[kind(net)].net; other != "" {
		return other
	}
	if m := clips.FindStringSubmatch(net); m != nil {
		if m[2] == "" {
			m[1] += "_quickgelu"
		}
		for _, size := range []string{m[3], "_224"} { // some have no twin of their size
			if _, err := nn.Lookup(m[1] + size); err == nil {
				return m[1] + size
			}
		}
		return ""
	}
	switch m := timms.FindStringSubmatch(net); {
	case m == nil:
		return ""
	case m[1] == "tf_":
		return cmp.Or(hubNames[m[2]], m[2])
	default:
		return "tf_" + m[2]
	}
}

// sameNet returns an error if config.json says that the weights are of another net than n, though their tensors may
// fit, and a doubt where nothing says which of two nets they are of.
func (n *Network) sameNet(f *statedict.File, l Meta) (doubt string, err error) {
	a, other, taken := l.Architecture, twin(n.arch), "taken for weights of "+n.arch
	by, clip := rivals[kind(n.arch)].by, clips.MatchString(n.arch)
	switch name, ok := hubNet(a); {
	case clip && other != "" && (kind(name) == kind(other) || l.Kind == "" && kind(l.Model) == kind(other)):
		return taken + ": the config.json beside them says that they are for the activation of " + other, nil
	case a != "" && kind(name) != kind(n.arch) && (other != "" || unsmoothed(name) == unsmoothed(n.arch) ||
		strings.HasPrefix(n.arch, "tf_") || windowed.MatchString(n.arch)):
		hint := ""
		if ok {
			hint = ": give the model " + name
		}
		return "", fmt.Errorf("the config.json beside it says that the weights are of timm's %s, whose layers differ from "+
			"those of %s%s", a, n.arch, hint)
	case a != "" && !ok:
		return taken + ", which have the same tensors: " + l.Unoffered(), nil
	case a != "" || l.Kind != "":
		return "", nil
	}
	if clip {
		by = "activation"
	}
	has := func(tensor string) bool { _, ok := f.Lookup(tensor); return ok } // other programs' names tell the nets apart
	const same = " have the same names"
	for _, t := range []struct {
		alike   bool
		weights string // for other layers
	}{
		{by != "" && other != "" && l.Model == "" && (by != headInput || has("reg_token")),
			"those of " + other + ", with another " + by + "," + same},
		{windowed.MatchString(n.arch), "those for other windows" + same},
		{smoothed.MatchString(n.arch), "those of " + unsmoothed(n.arch) + ", which has strides," + same},
		{timms.MatchString(n.arch) && has("conv_stem.weight"), "those of " + other + same + ", and need its layers"},
	} {
		if t.alike {
			return taken + ": " + t.weights + "; the hub's config.json beside the file tells", nil
		}
	}
	return "", nil
}
