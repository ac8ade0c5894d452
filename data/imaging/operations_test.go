package imaging

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// operate applies an operation of testdata/operations.py.
func operate(t *testing.T, m *Image, op string, args []any) *Image {
	var o Operator
	num := func(i int) float64 { return args[i].(float64) }
	how := func() Interpolation {
		i, err := ParseInterpolation(args[0].(string))
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	fill := []uint8{124, 116, 104}[:m.Channels]
	degrees := func(v float64) float64 { return math.Atan(v) * 180 / math.Pi }
	var err error
	switch op {
	case "resize":
		var out Image
		r := Resizer{Interpolation: how()}
		if err := r.Resize(&out, m, m.Bounds(), int(num(1)), int(num(2))); err != nil {
			t.Fatal(err)
		}
		return &out
	case "shear_x":
		err = o.Transform(m, ShearAngles(degrees(num(1)), 0), how(), nil)
	case "shear_y":
		err = o.Transform(m, ShearAngles(0, degrees(num(1))), how(), nil)
	case "translate_x":
		err = o.Transform(m, Shift(-num(1), 0), how(), nil)
	case "translate_y":
		err = o.Transform(m, Shift(0, -num(1)), how(), nil)
	case "rotate":
		err = o.Rotate(m, num(1), how(), nil)
	case "pil_shear_x":
		err = o.Transform(m, ShearX(num(1)), how(), fill)
	case "pil_shear_y":
		err = o.Transform(m, ShearY(num(1)), how(), fill)
	case "pil_translate_x":
		err = o.Transform(m, Shift(num(1)*float64(m.Width), 0), how(), fill)
	case "pil_translate_y":
		err = o.Transform(m, Shift(0, num(1)*float64(m.Height)), how(), fill)
	case "pil_rotate":
		err = o.Rotate(m, num(1), how(), fill)
	case "brightness":
		o.Brightness(m, num(0))
	case "color":
		o.Color(m, num(0))
	case "contrast":
		o.Contrast(m, num(0))
	case "sharpness":
		o.Sharpness(m, num(0))
	case "posterize":
		o.Posterize(m, int(num(0)))
	case "solarize":
		o.Solarize(m, num(0))
	case "solarize_add":
		o.SolarizeAdd(m, int(num(0)))
	case "autocontrast":
		o.AutoContrast(m)
	case "equalize":
		o.Equalize(m)
	case "invert":
		o.Invert(m)
	case "hue":
		o.Hue(m, num(0))
	default:
		t.Fatalf("no operation %s", op)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOperations compares with PIL and torchvision, bit for bit: see testdata/operations.py.
func TestOperations(t *testing.T) {
	b, err := os.ReadFile("testdata/operations.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Op    string
			Args  []any
			Image string
			Size  []int
			SHA1  string
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) < 300 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	images := map[string]*Image{}
	for name, file := range map[string]string{"rgb": "operations.png", "l": "operations-l.png"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var d Decoder
		m := new(Image)
		channels := 3
		if name == "l" {
			channels = 1
		}
		if err := d.Decode(m, b, channels); err != nil {
			t.Fatal(err)
		}
		images[name] = m
	}
	for _, c := range golden.Cases {
		m := *images[c.Image]
		m.Pix = slices.Clone(m.Pix)
		got := operate(t, &m, c.Op, c.Args)
		sum := sha1.Sum(got.Pix)
		if got.Width != c.Size[0] || got.Height != c.Size[1] || hex.EncodeToString(sum[:]) != c.SHA1 {
			t.Errorf("%s%v of %s differs from PIL's", c.Op, c.Args, c.Image)
		}
	}
}
