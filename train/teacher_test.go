package train

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/files"
	"onlinerna/train/average"
	"onlinerna/train/hook"
)

// teacherOf trains a net on pictures, and returns the file of its weights.
func teacherOf(t *testing.T, pictures string, seed uint64) string {
	t.Helper()
	c := tinyColour(filepath.Join(t.TempDir(), "teacher"), pictures)
	c.Epochs, c.Seed, c.RNA.Mode = 3, seed, average.Off
	trained(t, c, cpuDevice(t, 1))
	return filepath.Join(c.Out, "final.safetensors")
}

// TestTeacher: a run with a teacher, mixed images and smoothed labels is interrupted, and goes on with equal bits from
// a copy of the teacher's weights; other weights and none are refused.
func TestTeacher(t *testing.T) {
	dir, set := t.TempDir(), pictures(t, 20, 6, 16)
	c := tinyColour(filepath.Join(dir, "whole"), set)
	c.Teacher, c.TeacherAlpha, c.TeacherTemperature = teacherOf(t, set, 9), .6, 2
	c.Model, c.Mixup, c.LabelSmoothing, c.Augment = "resnet20", .4, .1, "cifar"
	var losses []float64
	whole := trained(t, c, cpuDevice(t, 2), watch{Step: func(s *hook.State) error {
		losses = append(losses, s.Step.Loss)
		return nil
	}})
	if notes := strings.Join(whole.Resolved.Notes, "\n"); !strings.Contains(notes, "the teacher is conv6 of "+c.Teacher) {
		t.Errorf("notes %s", notes)
	}
	alone := c
	alone.Out, alone.Teacher, alone.TeacherAlpha, alone.TeacherTemperature = "", "", 0, 0
	if r := trained(t, alone, cpuDevice(t, 2)); slices.Equal(numbers(t, r.Net.Params), numbers(t, whole.Net.Params)) {
		t.Error("a teacher does not change the weights")
	}
	parts := c
	parts.Out = filepath.Join(dir, "parts")
	stopped(t, parts, len(losses)/2)
	copied := filepath.Join(dir, "copy.safetensors")
	if err := files.Copy(copied, c.Teacher); err != nil {
		t.Fatal(err)
	}
	resumed := func(teacher string) (*Run, error) {
		return Resume(parts.Out, Deps{Device: cpuDevice(t, 2)}, func(c *Spec) { c.Teacher = teacher })
	}
	for want, teacher := range map[string]string{"name the place of its weights by --teacher": filepath.Join(dir, "none"),
		"have changed since the checkpoint": teacherOf(t, set, 10)} {
		if r, err := resumed(teacher); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		} else if r != nil {
			t.Error("a run beside an error")
		}
	}
	r, err := resumed(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(numbers(t, r.Net.Params), numbers(t, whole.Net.Params)) {
		t.Error("other weights after an interruption")
	}
}

// Teachers that do not fit are refused in a line.
func TestTeacherMistakes(t *testing.T) {
	set := pictures(t, 12, 4, 16)
	good := teacherOf(t, set, 1)
	broken := filepath.Join(t.TempDir(), "broken.safetensors")
	r := newRun(t, tinyColour("", set), cpuDevice(t, 1))
	if err := r.Net.Params.WriteAt64([]float64{math.NaN()}, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.Net.SaveWeights(broken, r.Net.Params, r.Net.Stats, r.Meta("sgd")); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn.safetensors")
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	put(t, torn, b[:len(b)/2])
	for want, change := range map[string]func(c *Spec){
		"has 2 outputs, and conv6 has 5":      func(c *Spec) { c.NumClasses = 5 },
		"in another order":                    func(c *Spec) { c.Classes = []string{c.Classes[1], c.Classes[0]} },
		"takes images of 3 channels":          func(c *Spec) { c.Data, c.Classes, c.Mean, c.Std = "glyphs", nil, nil, nil },
		`.weight" has 1 of `:                  func(c *Spec) { c.Teacher = broken },
		"the teacher: ":                       func(c *Spec) { c.Teacher = torn },
		"go with a teacher":                   func(c *Spec) { c.Teacher, c.TeacherAlpha = "", .5 },
		"teacher-temperature -1: must lie ab": func(c *Spec) { c.TeacherTemperature = -1 },
		"teacher-alpha 1.5: must lie above 0": func(c *Spec) { c.TeacherAlpha = 1.5 },
	} {
		c := tinyColour("", set)
		c.Teacher, c.Classes = good, slices.Clone(r.Resolved.Classes)
		change(&c)
		run, err := New(c, Deps{Device: cpuDevice(t, 1)})
		if err == nil {
			run.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
