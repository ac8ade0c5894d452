package runs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
)

// trained trains a run of two epochs.
func trained(t *testing.T, dir string) {
	t.Helper()
	c := traintest.Spec(train.Options(), train.Spec{Out: dir}, traintest.Tiny)
	c.Epochs = 2
	r, err := train.New(c, train.Deps{Device: traintest.CPU(t, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	trained(t, at("one"))
	for _, name := range []string{"study/offline", "a/b/c/d/deep", ".hidden", "copy"} {
		if err := os.CopyFS(at(name), os.DirFS(at("one"))); err != nil {
			t.Fatal(err)
		}
	}
	traintest.Put(t, at("photos/cat/1.png"), nil)
	traintest.Put(t, at("bert/config.json"), []byte(`{"hidden_size": 768}`))
	traintest.Put(t, at("notes.txt"), nil)
	traintest.Put(t, at("broken/config.json"), []byte(`{"hidden_size": 768}`))
	traintest.Put(t, at("broken/metrics.jsonl"), nil)
	if err := os.Symlink(at("one"), at("link")); err != nil {
		t.Skip(err)
	}
	list, passed, err := Find(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
		if r.State != train.Done || r.Epoch() != 2 || r.Best() == nil || r.BestAt(3) != nil || r.Updated.IsZero() {
			t.Errorf("%s: %s, %d epochs", r.Name, r.State, r.Epoch())
		}
	}
	if got := strings.Join(names, " "); got != "copy link study/offline" {
		t.Errorf("found %s", got)
	}
	if len(passed) != 2 || !strings.Contains(passed[0], "broken cannot be read") ||
		!strings.Contains(passed[0], "hidden_size") || passed[1] != "no run in "+at("a")+", "+at("bert")+", "+at("photos") {
		t.Errorf("passed over: %q", passed)
	}
	list, passed, err = Find(at("one")+"/", at("notes.txt"), at("study"), at("photos"), at("one"))
	if err != nil || len(list) != 2 || list[0].Name != "one" || list[1].Name != "study/offline" || len(passed) != 2 {
		t.Errorf("%v, %q, %v", list, passed, err)
	}
	if _, _, err := Find(at("none")); err == nil || !strings.Contains(err.Error(), at("none")) {
		t.Error(err)
	}
}

func TestConditions(t *testing.T) {
	run := func(name, data string, rate, wrong float64, s train.State) Run {
		r := Run{Name: name, Config: train.Spec{Model: "resnet20", Data: data}, State: s}
		r.Config.Schedule.Rate = rate
		if wrong > 0 {
			r.History = []hook.EpochRecord{{Epoch: 1, Best: &hook.BestRecord{ScoreRecord: hook.ScoreRecord{
				Score: network.Score{Top1: 100 - wrong}}}}}
		}
		return r
	}
	list := []Run{run("c", "/sets/cifar10", .1, 30, train.Done), run("a", "", .02, 7.5, train.Running),
		run("b", "x", .3, 0, train.Failed)}
	for text, want := range map[string]string{
		"state=done": "c", "state!=done": "a b", "data=cifar*": "c", "data=/sets/cifar10": "c", "data=glyphs": "a",
		"lr<0.1": "a", "lr>0.05": "b c", "lr=1e-1": "c", "model=resnet*": "a b c", "best<10": "a", "done=0": "b", "name=?": "a b c",
		"seed=0": "a b c", "lr!=0.3": "a c", "best_by=": "a b c",
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var names []string
		for _, r := range Where(list, c) {
			names = append(names, r.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"done": "no condition", "=x": "no condition", "lr!0.1": "lr!=VALUE",
		"lrr=1": "did you mean lr?", "lr<fast": "want a number", "state=gone": "no state", "model=[": "syntax"} {
		if _, err := ParseCondition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for by, want := range map[string]string{"name": "a b c", "best": "a c b", "-best": "c a b", "lr": "a c b",
		"data": "c a b", "-name": "c b a"} {
		name, reverse := strings.CutPrefix(by, "-")
		if err := Sort(list, name, reverse); err != nil {
			t.Fatal(err)
		}
		got := list[0].Name + " " + list[1].Name + " " + list[2].Name
		if got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
	if err := Sort(list, "bets", false); err == nil || !strings.Contains(err.Error(), "best") {
		t.Error(err)
	}
	if got := strings.Join(Options(list), " "); got != "data lr" && got != "lr data" {
		t.Errorf("options %s", got)
	}
	for i := range list { // options that no run was given follow from others
		list[i].Config.Given = []string{"lr"}
	}
	if got := strings.Join(Options(list), " "); got != "lr" {
		t.Error(got)
	}
	list[0].Config.Given = nil // a run of an earlier version
	if got := strings.Join(Options(list), " "); !strings.Contains(got, "data") {
		t.Error(got)
	}
}

// Files of a run that are holes of a terabyte end commands in an error and take little memory.
func TestHoles(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "run")
	trained(t, whole)
	for _, name := range []string{"metrics.jsonl", "config.json", "failure.json", "sessions.jsonl"} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		if name == "config.json" || name == "failure.json" { // read where there is no checkpoint, or no last epoch
			if err := os.RemoveAll(filepath.Join(dir, "checkpoint")); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(dir, "final.safetensors"))
		}
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(1 << 40); err != nil {
			t.Skip(err)
		}
		if name == "sessions.jsonl" {
			if list, err := train.ReadSessions(dir); err == nil {
				t.Errorf("%s: %d sessions", name, len(list))
			}
			continue
		}
		list, passed, err := Find(dir)
		if err != nil || len(list) != 0 || len(passed) != 1 || !strings.Contains(passed[0], name) ||
			!strings.Contains(passed[0], "more than") {
			t.Errorf("%s: %d runs, %q, %v", name, len(list), passed, err)
		}
	}
}
