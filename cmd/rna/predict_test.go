package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/evaluate"
	"onlinerna/train/network"
)

// picture writes a PNG file of one colour.
func picture(t *testing.T, path string, c color.Color, size int) {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	for i := range size * size {
		img.Set(i%size, i/size, c)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPredict trains on two colours and predicts them.
func TestPredict(t *testing.T) {
	dir := t.TempDir()
	colours := map[string]color.Color{"blue": color.RGBA{20, 30, 220, 255}, "red": color.RGBA{220, 30, 20, 255}}
	for name, c := range colours {
		for i := range 8 {
			for _, split := range []string{"train", "val"} {
				picture(t, filepath.Join(dir, "data", split, name, fmt.Sprint(i, ".png")), c, 16)
			}
		}
		picture(t, filepath.Join(dir, "photos", name+".png"), c, 40)
	}
	run := filepath.Join(dir, "run")
	// few steps give a warning
	said(t, "train --data "+filepath.Join(dir,
		"data")+" --model conv6 --epochs 4 --batch 8 --lr 0.02 --rna off -q -o "+run)
	weights := filepath.Join(run, "final.safetensors")
	out := mustRun(t, "predict", filepath.Join(dir, "photos"), "--weights", weights, "--csv", "--top", "1")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%q, %v", out, err)
	}
	for _, row := range rows[1:] {
		if want := strings.TrimSuffix(filepath.Base(row[0]), ".png"); row[3] != want {
			t.Errorf("%v, want %s", row, want)
		}
	}
	var list []evaluate.Prediction
	out = mustRun(t, "predict", filepath.Join(dir, "photos", "red.png"), "--weights", weights, "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || len(list[0].Guesses) != 2 ||
		list[0].Guesses[0].Name != "red" {
		t.Errorf("%s, %v", out, err)
	}
	if p := list[0].Guesses; p[0].Probability+p[1].Probability < .999999 || p[0].Probability < p[1].Probability {
		t.Errorf("%+v", p)
	}
	red := filepath.Join(dir, "photos", "red.png")
	first, second := mustRun(t, "predict", red, "--weights", weights), mustRun(t, "predict", weights, red)
	if first != second {
		t.Errorf("by --weights %q, with the weights first %q", first, second)
	}
	text := filepath.Join(dir, "photos", "text.png")
	if err := os.WriteFile(text, []byte("no image"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := runRNA(t, "predict", filepath.Join(dir, "photos"), "--weights", weights)
	if status != 1 || !strings.Contains(stderr, "text.png") || !strings.Contains(stderr,
		"1 of 3 images could not be read") || !strings.Contains(out, "red.png") {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, stderr)
	}
	for _, c := range []struct{ args, want string }{
		{"predict", "no images"}, {"predict x.jpg", "x.jpg is neither"},
		{"predict nowhere.jpg --weights " + weights, "nowhere.jpg"},
		{"predict " + text + " --weights " + weights + " --json --csv", "exclude each other"},
	} {
		if status, _, err := runRNA(t, strings.Fields(c.args)...); status == 0 || !strings.Contains(err, c.want) {
			t.Errorf("rna %s: status %d, stderr %q", c.args, status, err)
		}
	}
}

// TestImageNetLabels evaluates weights with 1,000 unnamed outputs on folders of wnids, by their indices; on other
// folders it is an error.
func TestImageNetLabels(t *testing.T) {
	dir := t.TempDir()
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	net, err := network.New(dev, "lenet", nn.Config{Classes: 1000, Channels: 3, Size: 28}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	weights := filepath.Join(dir, "w.safetensors")
	if err := net.SaveWeights(weights, net.Params, net.Stats, network.Meta{Model: "lenet", ImageSize: 28,
		Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}}); err != nil {
		t.Fatal(err)
	}
	for _, class := range []string{"n01443537", "n15075141"} { // goldfish and toilet tissue: 1 and 999
		picture(t, filepath.Join(dir, "known", class, "a.png"), color.White, 28)
		picture(t, filepath.Join(dir, "other", "x"+class, "a.png"), color.White, 28)
	}
	csvFile := filepath.Join(dir, "p.csv")
	mustRun(t, "eval", "--weights", weights, "--data", filepath.Join(dir, "known"), "--predictions", csvFile)
	b, err := os.ReadFile(csvFile)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); !strings.Contains(s, "n01443537/a.png,1,n01443537,") ||
		!strings.Contains(s, "n15075141/a.png,999,n15075141,") {
		t.Errorf("labels in %.200s", s)
	}
	status, _, stderr := runRNA(t, "eval", "--weights", weights, "--data", filepath.Join(dir, "other"))
	if status == 0 || !strings.Contains(stderr, "1000 outputs without names, and the data 2 classes") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	out := mustRun(t, "predict", filepath.Join(dir, "known"), "--weights", weights, "--top", "1000")
	if !strings.Contains(out, "goldfish  n01443537") || !strings.Contains(out, "toilet tissue  n15075141") {
		t.Errorf("output %.300s", out)
	}
	if wnids, names := data.ImageNetClasses(); len(wnids) != 1000 || len(names) != 1000 || wnids[1] != "n01443537" ||
		names[999] != "toilet tissue" {
		t.Error("ImageNet's classes are others")
	}
}

// TestPredictAsEval checks that predict and eval agree for weights whose metadata change the net.
func TestPredictAsEval(t *testing.T) {
	dir := t.TempDir()
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	meta := network.Meta{Model: "resnet20", Classes: []string{"a", "b"}, ImageSize: 32, BlurPool: true,
		Mean: []float64{.5, .4, .3}, Std: []float64{.1, .2, .3}}
	net, err := network.New(dev, meta.Model, meta.Config(2, 3), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	weights := filepath.Join(dir, "w.safetensors")
	if err := net.SaveWeights(weights, net.Params, net.Stats, meta); err != nil {
		t.Fatal(err)
	}
	for i, class := range meta.Classes {
		path := filepath.Join(dir, "val", class, "0.png")
		picture(t, path, color.Gray{uint8(40 + 150*i)}, 32)
	}
	logits := filepath.Join(dir, "p.csv")
	mustRun(t, "eval", "--weights", weights, "--data", filepath.Join(dir, "val"), "--predictions", logits)
	b, err := os.ReadFile(logits)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%q, %v", b, err)
	}
	var list []evaluate.Prediction
	out := mustRun(t, "predict", filepath.Join(dir, "val"), "--weights", weights, "--json", "--top", "2")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 {
		t.Fatalf("%s, %v", out, err)
	}
	for i, p := range list {
		var x [2]float64
		for k := range x {
			if x[k], err = strconv.ParseFloat(rows[i+1][4+k], 64); err != nil {
				t.Fatal(err)
			}
		}
		want := 1 / (1 + math.Exp(x[1]-x[0]))
		got := p.Guesses[0].Probability
		if p.Guesses[0].Name == "b" {
			got = p.Guesses[1].Probability
		}
		if math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: probability %v of a, and %v by the logits of eval", rows[i+1][0], got, want)
		}
	}
}
