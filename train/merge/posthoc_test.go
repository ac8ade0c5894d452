package merge

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"onlinerna/train/extrapolate"
)

// TestPowerWeights compares the weights of steps with the average's rule, applied to impulses, and with values by hand:
// for γ = 1 they are 2s/(T(T+1)).
func TestPowerWeights(t *testing.T) {
	near(t, "γ 1", powerWeights(1, 4), []float64{.1, .2, .3, .4}, 1e-15)
	const gamma, steps = 5.5, 40
	want := make([]float64, steps)
	for s := range want {
		x := 0.0
		for u := range want {
			w := 0.0
			if u == s {
				w = 1
			}
			x += (gamma + 1) / (float64(u+1) + gamma) * (w - x)
		}
		want[s] = x
	}
	near(t, "γ 5.5", powerWeights(gamma, steps), want, 1e-14)
}

// everyEpoch lists EMAs with γ = 5 and 12 at the ends of epochs.
func everyEpoch(epochs, steps int) (list []Stored) {
	for e := range epochs {
		list = append(list, Stored{5, (e + 1) * steps}, Stored{12, (e + 1) * steps})
	}
	return list
}

// TestFit: a stored EMA is found again; weights sum to 1; the distance is that of the weights of steps; and no other
// weights with the sum 1 are nearer.
func TestFit(t *testing.T) {
	stored := everyEpoch(15, 56)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		p    Profile
		most float64
	}{{Profile{Gamma: 5}, 1e-7}, {Profile{Gamma: 12}, 1e-7}, {Profile{Gamma: 8}, .0025}, {Profile{Gamma: 3}, .0045},
		{Profile{Gamma: 20}, .0185}, {Profile{Schedule: "linear", Epochs: 3}, .0125}, // as docs/training.md says
		{Profile{Schedule: "cosine", Epochs: 5}, .03}, {Profile{Schedule: "1-sqrt", Epochs: 5}, .575}} {
		want, err := c.p.Weights(840, 15)
		if err != nil {
			t.Fatal(err)
		}
		w, residual, err := Fit(stored, want)
		if err != nil {
			t.Fatal(err)
		}
		distance := func(w []float64) float64 {
			square, norm := 0.0, 0.0
			got := make([]float64, len(want))
			for i, p := range stored {
				for s, v := range powerWeights(p.Gamma, p.Step) {
					got[s] += w[i] * v
				}
			}
			for s, v := range want {
				square += (got[s] - v) * (got[s] - v)
				norm += v * v
			}
			return math.Sqrt(square / norm)
		}
		sum := 0.0
		for _, v := range w {
			sum += v
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(residual-distance(w)) > 1e-9 || !(residual <= c.most) || residual < c.most/2 && c.most > 1e-6 {
			t.Errorf("%v: sum %v, residual %v, distance %v, want %v", c.p, sum, residual, distance(w), c.most)
		}
		for range 20 {
			other := append([]float64(nil), w...)
			i, j, by := rng.IntN(len(w)), rng.IntN(len(w)), .1*rng.NormFloat64()
			other[i], other[j] = other[i]+by, other[j]-by
			if d := distance(other); d < residual*(1-1e-6)-1e-8 {
				t.Errorf("%v: %v is nearer than %v", c.p, d, residual)
			}
		}
	}
	// Of EMAs at the end alone: for 2 steps with γ 1 and 2 the weights are 1/3, 2/3 and 1/4, 3/4. The mean is 3 times the
	// one minus 2 times the other.
	w, residual, err := Fit([]Stored{{1, 2}, {2, 2}}, []float64{.5, .5})
	if err != nil || residual > 1e-6 {
		t.Fatal(w, residual, err)
	}
	near(t, "two", w, []float64{3, -2}, 1e-5)
	for _, bad := range []struct {
		stored []Stored
		want   string
	}{{nil, "no stored"}, {[]Stored{{5, 10}, {5, 10}}, "two files"}, {[]Stored{{5, 200}}, "step 200"}, {[]Stored{{0, 10}}, "γ 0"},
		{[]Stored{{5, 0}}, "step 0"}} {
		if _, _, err := Fit(bad.stored, make([]float64, 180)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: %v", bad.stored, err)
		}
	}
}

// TestFitAsEMAPyTorch compares with ema-pytorch: its weights of the same stored EMAs make an average that is no nearer,
// and its own average is that of the weights of steps, but for a few steps at the start.
func TestFitAsEMAPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/posthoc.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Version string
		Steps   int
		Karras  map[string][]float64 // by γ: the weights of steps
		Solved  []struct {
			Gamma   float64
			Weights []float64
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	for name, want := range golden.Karras {
		var gamma float64
		if err := json.Unmarshal([]byte(name), &gamma); err != nil {
			t.Fatal(err)
		}
		square, norm := 0.0, 0.0
		for s, v := range powerWeights(gamma, len(want)) {
			square += (v - want[s]) * (v - want[s])
			norm += want[s] * want[s]
		}
		if d := math.Sqrt(square / norm); d > .01 {
			t.Errorf("γ %s: %v from ema-pytorch", name, d)
		}
	}
	stored := everyEpoch(10, golden.Steps/10)
	for _, c := range golden.Solved {
		want := powerWeights(c.Gamma, golden.Steps)
		_, residual, err := Fit(stored, want)
		if err != nil {
			t.Fatal(err)
		}
		norm, square := 0.0, 0.0
		rest := append([]float64(nil), want...)
		for i, p := range stored {
			for s, v := range powerWeights(p.Gamma, p.Step) {
				rest[s] -= c.Weights[i] * v
			}
		}
		for s, v := range rest {
			square += v * v
			norm += want[s] * want[s]
		}
		theirs := math.Sqrt(square / norm)
		if residual > theirs*1.01+1e-6 || theirs > .05 {
			t.Errorf("γ %v: residual %v, of ema-pytorch's weights %v", c.Gamma, residual, theirs)
		}
	}
}

// TestRebuild makes averages of a walk from its EMAs: they differ from the actual ones by the distance of the weights.
func TestRebuild(t *testing.T) {
	const epochs, each = 8, 25
	rng := rand.New(rand.NewPCG(3, 4))
	var walk []float64
	x := map[float64]float64{}
	var files []*extrapolate.Checkpoint
	var values []float64
	for s := range epochs * each {
		w := math.Sin(float64(s)/40) + .3*rng.NormFloat64()
		walk = append(walk, w)
		for _, gamma := range []float64{5, 12} {
			x[gamma] += (gamma + 1) / (float64(s+1) + gamma) * (w - x[gamma])
			if (s+1)%each == 0 {
				meta, _ := json.Marshal(gamma)
				step, _ := json.Marshal(s + 1)
				files = append(files, &extrapolate.Checkpoint{Path: "ema",
					Metadata: map[string]string{"ema_gamma": string(meta), "ema_step": string(step)}})
				values = append(values, x[gamma])
			}
		}
	}
	for _, text := range []string{"8", "linear:2", "cosine:4.5"} {
		p := Profile{Gamma: 8}
		if text != "8" {
			var err error
			if p, err = ParseProfile(text); err != nil {
				t.Fatal(err)
			}
		}
		w, residual, err := Rebuild(files, p, epochs)
		if err != nil {
			t.Fatal(err)
		}
		got, want, norm := 0.0, 0.0, 0.0
		for i, v := range w {
			got += v * values[i]
		}
		wanted, _ := p.Weights(epochs*each, epochs)
		square := 0.0
		for s, v := range wanted {
			want += v * walk[s]
			norm += v * v
			square += (walk[s] - want) * (walk[s] - want)
		}
		if math.Abs(got-want) > residual*math.Sqrt(norm*square)+1e-9 || residual > .1 {
			t.Errorf("%v: %v, want %v, residual %v", p, got, want, residual)
		}
	}
	if _, _, err := Rebuild(files, Profile{Schedule: "linear", Epochs: 9}, epochs); err == nil {
		t.Error("a decay over more epochs than there are")
	}
	delete(files[3].Metadata, "ema_step")
	if _, _, err := Rebuild(files, Profile{Gamma: 8}, epochs); err == nil || !strings.Contains(err.Error(), "no power EMA") {
		t.Errorf("a file without its step: %v", err)
	}
	for _, bad := range []string{"", "linear", "linear:0", "linear:-1", "linear:inf", "exp:3", "linear:x"} {
		if _, err := ParseProfile(bad); err == nil {
			t.Errorf("%q", bad)
		}
	}
	if p, err := ParseProfile("1-sqrt:2.5"); err != nil || p != (Profile{Schedule: "1-sqrt", Epochs: 2.5}) ||
		p.String() != "WSM 1-sqrt of 2.5 epochs" {
		t.Error(p, err)
	}
}
