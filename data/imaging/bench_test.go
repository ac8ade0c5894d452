package imaging

import (
	"image"
	"os"
	"testing"

	"onlinerna/internal/testdata"
)

// benchmarkImage is an ImageNet photograph of 500×375 pixels.
func benchmarkImage(b *testing.B) []byte {
	data, err := os.ReadFile(testdata.Shared(b, "reference/images/n01440764_tench.jpg"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	return data
}

func BenchmarkDecode(b *testing.B) {
	data := benchmarkImage(b)
	var d Decoder
	var m Image
	for b.Loop() {
		if err := d.Decode(&m, data, 3); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResizedCrop is a training sample: a box of about half the area in the middle, resized to 224×224.
func BenchmarkResizedCrop(b *testing.B) {
	data := benchmarkImage(b)
	w, h, err := Dimensions(data)
	if err != nil {
		b.Fatal(err)
	}
	box := image.Rect(w/7, h/7, w-w/7, h-h/7)
	var d Decoder
	var r Resizer
	var m, crop Image
	for b.Loop() {
		if err := d.DecodeBox(&m, data, 3, box); err != nil {
			b.Fatal(err)
		}
		if err := r.Resize(&crop, &m, m.Bounds(), 224, 224); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEval is an evaluation sample: the shorter side to 256, the centre 224×224.
func BenchmarkEval(b *testing.B) {
	data := benchmarkImage(b)
	var d Decoder
	var r Resizer
	var m, crop Image
	for b.Loop() {
		if err := d.Decode(&m, data, 3); err != nil {
			b.Fatal(err)
		}
		if err := r.ResizeCenterCrop(&crop, &m, 256, 224, 224); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResize leaves decoding out.
func BenchmarkResize(b *testing.B) {
	data := benchmarkImage(b)
	m, err := Decode(data, 3)
	if err != nil {
		b.Fatal(err)
	}
	var r Resizer
	var crop Image
	for b.Loop() {
		if err := r.ResizeCenterCrop(&crop, m, 256, 224, 224); err != nil {
			b.Fatal(err)
		}
	}
}
