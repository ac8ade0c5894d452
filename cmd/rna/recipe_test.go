package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/terminal"
	"onlinerna/nn"
	_ "onlinerna/nn/zoo/zootest"
	"onlinerna/train"
	"onlinerna/train/recipe"
	"onlinerna/train/schedule"
)

// pictureFolders creates folders of PNG files of size×size: train with n images, val with m, two classes.
func pictureFolders(t *testing.T, n, m, size int) string {
	t.Helper()
	dir := t.TempDir()
	for split, k := range map[string]int{"train": n, "val": m} {
		for i := range k {
			img := image.NewRGBA(image.Rect(0, 0, size, size))
			for j := range img.Pix {
				img.Pix[j] = uint8(j*(i+2) | 255*(j%4/3))
			}
			path := filepath.Join(dir, split, []string{"a", "b"}[i%2], fmt.Sprint(i, ".png"))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(png.Encode(f, img), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// smallNet is a small net of the family that a recipe is for, whose patterns fit all nets that it is for.
func smallNet(t *testing.T, r *recipe.Recipe) string {
	small := "resnet20"
	for _, a := range nn.Architectures() {
		if !r.For(a.Name) {
			continue
		}
		for family, name := range map[string]string{"mobilenet": "mobilenet_v3_small_narrow", "convnext": "convnext_narrow",
			"deit": "deit_narrow", "swin": "swin_narrow", "vit": "vit_torchvision_narrow", "efficientnet": "efficientnet_narrow"} {
			if a.Family == family {
				small = name
			}
		}
		for _, version := range []string{"efficientnet_v2", "swin_v2"} {
			if strings.HasPrefix(a.Name, version) {
				small = version + "_narrow"
			}
		}
		m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Settings {
			if x.Name != "no-decay" {
				continue
			}
			for _, pattern := range strings.Split(x.String(), ",") {
				if !slices.ContainsFunc(m.Params, func(p nn.Param) bool { ok, _ := path.Match(pattern, p.Name); return ok }) {
					t.Errorf("%s: %s has no parameter %s", r.Name, a.Name, pattern)
				}
			}
		}
	}
	return small
}

// TestRecipes runs a step of each recipe with small images and a small net, and the recipe's other options unchanged.
func TestRecipes(t *testing.T) {
	dir := pictureFolders(t, 8, 2, 40)
	for _, name := range recipe.Names() {
		r, err := recipe.Find(name)
		if err != nil || r.Source == "" || len(r.Settings) < 10 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		const size = "32"
		net := smallNet(t, r)
		out := filepath.Join(t.TempDir(), "run")
		args := []string{"train", "--recipe", name, "--data", dir, "--out", out, "--model", net, "--batch", "4",
			"--limit-batches", "1", "--limit-val", "1",
			"--image-size", size, "--val-crop", size, "--val-resize", "72", "--train-crop", size, "--rna-bn-batches", "1",
			"--device", "cpu", "--quiet"}
		set := map[string]bool{}
		for _, o := range r.Settings {
			set[o.Name] = true
		}
		epochs := "1"
		if set["warmup"] {
			epochs = "3"
			args = append(args, "--warmup", "1")
		}
		if set["train-crop-from"] {
			args = append(args, "--train-crop-from", "24", "--train-crop-ramp", "0,1")
		}
		if set["no-decay"] && net == "resnet20" {
			args = append(args, "--no-decay", "*bn*") // the small net has no others
		}
		if set["lr-step"] {
			args = append(args, "--lr-step", "1")
		}
		var stdout, stderr strings.Builder
		if code := run(context.Background(), append(args, "--epochs", epochs), &stdout, &stderr); code != 0 {
			t.Errorf("%s: exit %d: %s", name, code, stderr.String())
			continue
		}
		c, err := train.ReadSpec(out)
		if err != nil || c.Model != net || c.Batch != 4 || c.Accumulate != 1 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		for _, line := range strings.Split(stdout.String(), "\n")[:8] {
			if len([]rune(line)) > terminal.Default && strings.HasPrefix(line, "  --") {
				t.Errorf("%s: %q is longer than %d columns", name, line, terminal.Default)
			}
		}
		switch name {
		case "rsb-a3":
			if c.Optimizer != "lamb" || c.Loss != "bce" || c.AutoAugment != "rand-m6-mstd0.5-inc1" || *c.WeightDecay != .02 ||
				!c.DecayWeightsOnly {
				t.Errorf("%s: %+v", name, c)
			}
		case "ffcv-16":
			if !c.BlurPool || !c.TestFlip || c.Schedule.By != schedule.ByStep || c.Schedule.Rate != 1.7 || len(c.NoDecay) != 1 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// The command line's schedule and warm-up replace the recipe's, and a net that the recipe is not for gets a hint.
func TestRecipeOverridden(t *testing.T) {
	dir := pictureFolders(t, 8, 2, 40)
	out := mustRun(t, "train", "--recipe", "convnext", "--model", "resnet20", "--data", dir, "--image-size", "32",
		"--val-crop", "32", "--val-resize", "40", "--no-decay", "*bn*", "--batch", "4", "--limit-batches", "1", "--epochs",
		"2", "--warmup", "0", "--rna", "off", "--schedule", "step", "--lr-step", "1", "--device", "cpu", "--out",
		filepath.Join(t.TempDir(), "run"))
	for _, want := range []string{"It is a recipe of other nets than resnet20.", "--schedule step",
		"--decay-weights-only=true", "--warmup 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	for _, cleared := range []string{"--lr-final", "--warmup-from"} {
		if strings.Contains(out, cleared) {
			t.Errorf("%s of the recipe remains in\n%s", cleared, out)
		}
	}
	mustRun(t, "train", "--recipe", "convnext", "--model", "resnet20", "--data", dir, "--image-size", "32",
		"--val-crop", "32", "--val-resize", "40", "--no-decay", "*bn*", "--batch", "4", "--limit-batches", "1", "--epochs", "2", "--warmup-steps",
		"1", "--rna", "off", "--device", "cpu", "--quiet", "--out", filepath.Join(t.TempDir(), "run"))
}

// A recipe keeps its final rate if the command line repeats its schedule; config.json has the options that were given.
func TestRecipeRepeated(t *testing.T) {
	dir := pictureFolders(t, 8, 2, 40)
	t.Chdir(t.TempDir())
	out := mustRun(t, "train", "--recipe", "convnext", "--model", "resnet20", "--data", dir, "--image-size", "32",
		"--val-crop", "32", "--val-resize", "40", "--no-decay", "*bn*", "--batch", "4", "--limit-batches", "1", "--epochs",
		"2", "--warmup", "0", "--rna", "off", "--schedule", "cosine")
	if !strings.Contains(out, "--lr-final 1e-6") {
		t.Errorf("the final rate is missing in\n%s", out)
	}
	runs, err := filepath.Glob("runs/*")
	if err != nil || len(runs) != 1 {
		t.Fatalf("%q, %v", runs, err)
	}
	c, err := train.ReadSpec(runs[0])
	if err != nil || !slices.Contains(c.Given, "schedule") || slices.Contains(c.Given, "out") ||
		slices.Contains(c.Given, "device") {
		t.Errorf("given %q, %v", c.Given, err)
	}
}
