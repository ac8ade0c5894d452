package main

import (
	"bytes"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/report"
)

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// halves writes a table of gray images whose left and right halves are dark or bright. The row of an image is made by
// its brightnesses.
func halves(t *testing.T, head string, row func(left, right int) string) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []struct {
		name  string
		first int
		count int
	}{{"train.csv", 0, 48}, {"val.csv", 48, 24}} {
		table := head
		for i := part.first; i < part.first+part.count; i++ {
			left, right := 20+i%2*200, 20+i/2%2*200
			m := image.NewGray(image.Rect(0, 0, 28, 28))
			for k := range m.Pix {
				if m.Pix[k] = uint8(left); k%28 >= 14 {
					m.Pix[k] = uint8(right)
				}
			}
			m.SetGray(i%28, i/28, color.Gray{Y: 128})
			var b bytes.Buffer
			if err := png.Encode(&b, m); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%d.png", i)
			if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			table += name + "," + row(left, right) + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, part.name), []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The page of a run of another task has its classes or numbers and its images, and its command repeats the run.
func TestTasks(t *testing.T) {
	several := halves(t, "file,label\n", func(left, right int) string {
		var names []string
		if left > 100 {
			names = append(names, "left")
		}
		if right > 100 {
			names = append(names, "right")
		}
		return strings.Join(names, ";")
	})
	numbers := halves(t, "file,left,right\n", func(left, right int) string { return fmt.Sprintf("%d,%d", left, right) })
	names := filepath.Join(t.TempDir(), "names.txt")
	if err := os.WriteFile(names, []byte("right\nleft\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string // on the page
		csv  string   // of rna predict
		eval string
	}{
		"multi-label": {[]string{"--data", several, "--classes", names, "--winograd=false", "--low-memory"},
			[]string{"<h3>Classes</h3>", "threshold", "At the thresholds: macro F1",
				"These images chose the thresholds themselves", "label left", "no class", "--classes FILE",
				"--winograd=false", "--low-memory=true"},
			"path,rank,class,name,probability,threshold,shown\n", "24 images of 2 classes"},
		"regression": {[]string{"--data", numbers, "--task", "regression"}, []string{"<h3>Numbers</h3>",
			"left: prediction by label", "tile plain", "label left 220, right 20", "--task regression", "R²"},
			"path,left,right\n", "24 images of 2 numbers each"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			args := append([]string{"train", "--model", "lenet", "--image-size", "28", "--epochs", "2", "--batch", "4", "--rna",
				"off", "--augment", "none", "--device", "cpu", "-q", "--out", dir}, c.args...)
			mustRun(t, args...)
			page := html.UnescapeString(string(readFile(t, filepath.Join(dir, "report.html"))))
			for _, want := range append(c.want, "Images with the highest losses", "data:image/", "on 24 images: ") {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			history, err := train.ReadHistory(dir)
			if err != nil {
				t.Fatal(err)
			}
			best := history[len(history)-1].Best
			e, err := report.ReadEvaluation(dir, best)
			if err != nil || e == nil || e.Targets == nil || e.Score.Error() != best.Score.Error() {
				t.Fatalf("the page evaluates %+v, the run %+v: %v", e, best, err)
			}
			if len(e.Worst) != 12 || len(e.Best) != 12 || *e.Worst[0].Loss < *e.Best[0].Loss {
				t.Errorf("%d images with the highest losses, %d with the lowest", len(e.Worst), len(e.Best))
			}
			command := regexp.MustCompile(`(?s)<pre>rna (train .*?)\s*</pre>`).FindStringSubmatch(page)
			if command == nil {
				t.Fatal("the page tells no command")
			}
			again := filepath.Join(t.TempDir(), "again")
			words := strings.Fields(strings.ReplaceAll(command[1], "FILE", names))
			mustRun(t, append(words, "--out", again, "-q", "--device", "cpu")...)
			if a, b := readFile(t, filepath.Join(dir, "final.safetensors")), readFile(t, filepath.Join(again,
				"final.safetensors")); !bytes.Equal(a, b) {
				t.Errorf("%s gives other weights", command[1])
			}
			_, out, _ := runRNA(t, "predict", dir, filepath.Join(c.args[1], "1.png"), "--csv")
			if !strings.HasPrefix(out, c.csv) {
				t.Errorf("predict --csv: %s", out)
			}
			if out := mustRun(t, "eval", dir); !strings.Contains(out, c.eval) {
				t.Errorf("eval: %s", out)
			}
			card := filepath.Join(t.TempDir(), "README.md")
			mustRun(t, "report", dir, "--model-card", card, "-o", filepath.Join(t.TempDir(), "a.html"))
			if b := string(readFile(t, card)); strings.Count(b, "\n| ") != 3 || !strings.Contains(b, "| left | ") {
				t.Errorf("the card has no table:\n%s", b)
			}
		})
	}
}
