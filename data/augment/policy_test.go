package augment

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/imaging"
	"onlinerna/data/random"
)

var operations = map[string]operation{
	"Identity": opIdentity, "ShearX": opShearX, "ShearY": opShearY, "TranslateX": opTranslateX,
	"TranslateY": opTranslateY, "Rotate": opRotate,
	"Brightness": opBrightness, "Color": opColor, "Contrast": opContrast, "Sharpness": opSharpness,
	"Posterize": opPosterize,
	"Solarize":  opSolarize, "AutoContrast": opAutoContrast, "Equalize": opEqualize, "Invert": opInvert,
	"SolarizeAdd": opSolarizeAdd,
}

func operationsImage(t *testing.T) *imaging.Image {
	b, err := os.ReadFile("../imaging/testdata/operations.png")
	if err != nil {
		t.Fatal(err)
	}
	var d imaging.Decoder
	m := new(imaging.Image)
	if err := d.Decode(m, b, 3); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPolicyOperations compares operations at their magnitudes with those of torchvision and timm, bit for bit: see
// testdata/policies.py.
func TestPolicyOperations(t *testing.T) {
	b, err := os.ReadFile("testdata/policies.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][][5]any
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	rgb := operationsImage(t)
	for kind, cases := range golden {
		if len(cases) < 100 {
			t.Errorf("%s: %d cases", kind, len(cases))
		}
		for _, c := range cases {
			m := *rgb
			m.Pix = slices.Clone(rgb.Pix)
			a := operator{}
			name := c[0].(string)
			level, negative := c[2].(float64), c[3].(bool)
			var err error
			if kind == "timm" {
				a.fill = []uint8{124, 116, 104}
				how := imaging.Bilinear
				if c[1].(float64) == 3 {
					how = imaging.Bicubic
				}
				op := operations[strings.TrimSuffix(strings.TrimSuffix(name, "Increasing"), "Rel")]
				err = timmApply(&m, &a, op, level/10, negative, how)
			} else {
				if a.how, err = imaging.ParseInterpolation(c[1].(string)); err != nil {
					t.Fatal(err)
				}
				list, n := levels, 31
				if kind == "wide" {
					list = wideLevels
				} else if kind == "auto" {
					n = 10
				}
				i := slices.IndexFunc(list, func(s space) bool { return s.op == operations[name] })
				err = list[i].do(&m, &a, int(level), n, negative)
			}
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha1.Sum(m.Pix); hex.EncodeToString(sum[:]) != c[4] {
				t.Errorf("%s %v differs", kind, c[:4])
			}
		}
	}
}

func TestParsePolicy(t *testing.T) {
	p, err := parsePolicy("rand-m7-mstd0.5-inc1")
	if err != nil || p != (timmRandom{7, .5, .5, 2}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, name := range []string{"ta", "rand-m7", "rand-m77-inc1", "rand-x3-inc1", "rand-inc1-m", "rand-n0-inc1"} {
		if _, err := parsePolicy(name); err == nil {
			t.Errorf("%s is a policy", name)
		}
	}
}

// TestPolicyChoices checks how often operations change an image, and that each operation occurs.
func TestPolicyChoices(t *testing.T) {
	rgb := operationsImage(t)
	for _, name := range []string{"ra", "ta_wide", "imagenet", "cifar10", "rand-m7-mstd0.5-inc1"} {
		p, err := parsePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]bool{}
		for i := range 400 {
			r := random.New(1, uint64(i))
			m := *rgb
			m.Pix = slices.Clone(rgb.Pix)
			if err := p.apply(&m, &operator{}, &r); err != nil {
				t.Fatal(err)
			}
			kinds[string(m.Pix)] = true
		}
		if len(kinds) < 40 {
			t.Errorf("%s: %d images out of 400", name, len(kinds))
		}
	}
}
