package canvas

import (
	"bytes"
	"compress/zlib"
	"encoding/xml"
	"image/png"
	"io"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func drawn(t *testing.T, format, s string) []byte {
	t.Helper()
	c, err := New(format, 10*vg.Centimeter, 5*vg.Centimeter)
	if err != nil {
		t.Fatal(err)
	}
	dc := draw.New(c)
	style := plot.New().Title.TextStyle
	style.Font.Variant = "Sans"
	dc.FillText(style, vg.Point{X: 20, Y: 20}, s)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFormats(t *testing.T) {
	for name, want := range map[string]string{"a.svg": "svg", "b/A.PNG": "png", "x.pdf": "pdf"} {
		if got, err := FormatOf(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"a", "a.jpg", "svg"} {
		if _, err := FormatOf(name); err == nil || !strings.Contains(err.Error(), ".svg, .png, .pdf") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New("jpg", 1, 1); err == nil {
		t.Error("jpg is drawn")
	}
	if svg := drawn(t, "svg", "f − f*"); !bytes.Contains(svg, []byte("f − f*")) ||
		!bytes.Contains(svg, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")) {
		t.Errorf("%s", svg)
	}
	img, err := png.Decode(bytes.NewReader(drawn(t, "png", "f − f*")))
	if err != nil {
		t.Fatal(err)
	}
	if w := img.Bounds().Dx(); w < 590 || w > 592 { // 10 cm of 150 dots an inch
		t.Errorf("%d pixels wide", w)
	}
}

// TestPDF: characters of Windows-1252 are text, all others outlines.
func TestPDF(t *testing.T) {
	for s, isText := range map[string]bool{"2 × 3 ± 1": true, "f − f*": false, "‖R‖": false} {
		content := page(t, drawn(t, "pdf", s))
		if text, curves := strings.Contains(content, "Tj"), strings.Contains(content, " l\n"); text != isText ||
			curves == isText {
			t.Errorf("%q: as text %v, as lines %v", s, text, curves)
		}
		if isText && !strings.Contains(content, "2 \xd7 3 \xb1 1") {
			t.Errorf("%q: other bytes in %q", s, content)
		}
	}
}

// page is the content of the first stream of a PDF.
func page(t *testing.T, file []byte) string {
	t.Helper()
	i := bytes.Index(file, []byte("stream\n"))
	if i < 0 {
		t.Fatal("no stream")
	}
	z, err := zlib.NewReader(bytes.NewReader(file[i+len("stream\n"):]))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An SVG stays well-formed XML, whatever a text contains.
func TestControlCharacters(t *testing.T) {
	b := drawn(t, SVG, "a\x00\x1b]0;x\a<script>\ufffe&")
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, b)
		}
	}
	if !bytes.Contains(b, []byte(`a\x00\x1b]0;x\a&lt;script&gt;`)) {
		t.Errorf("%s", b)
	}
}
