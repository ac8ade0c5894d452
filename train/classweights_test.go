package train

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scikit-learn's weights, and those of Cui et al.
func TestClassWeightsByCount(t *testing.T) {
	b, err := os.ReadFile("testdata/classweights.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Rule    string
		Counts  []int
		Weights []float64
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) != 20 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		got, err := ClassWeights{c.Rule}.of(make([]string, len(c.Counts)), c.Counts, len(c.Counts)+1)
		if err != nil {
			t.Fatal(err)
		}
		for k, w := range append(c.Weights, 1) { // an output without a class
			if math.Abs(got[k]-w) > 1e-12*w {
				t.Errorf("%s of %v: %v, want %v", c.Rule, c.Counts, got, c.Weights)
				break
			}
		}
	}
	_, err = ClassWeights{"auto"}.of([]string{"cat", "dog"}, []int{3, 0}, 2)
	if err == nil || !strings.Contains(err.Error(), "the class dog has no images") {
		t.Errorf("a class without images: %v", err)
	}
}

// TestClassWeightsFile reads weights by name, and one for each class.
func TestClassWeightsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights.txt")
	for _, c := range []struct{ text, want, err string }{
		{"# weights\ncat 2\ngrey dog,0.5\r\n\nx=y = 3\n", "cat=2|grey dog=0.5|x=y=3", ""},
		{"1\n2.5\n", "1|2.5", ""},
		{"cat two\n", "", "line 1, cat two: want a class and its number"},
		{"1\n-1\n", "", "line 2, -1"},
		{"\n", "", "no weights"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var s Spec
		err := table.Find("class-weights").Set(&s, path)
		if got := strings.Join(s.ClassWeights, "|"); got != c.want || (err == nil) != (c.err == "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %s, %v", c.text, got, err)
		}
	}
	w := ClassWeights{"dog=3", "cat=0.5"}
	if err := w.check([]string{"ape", "cat", "dog"}); err != nil {
		t.Error(err)
	}
	if x, err := w.of([]string{"ape", "cat", "dog"}, nil, 3); err != nil || !slices.Equal(x, []float64{1, .5, 3}) {
		t.Errorf("%v, %v", x, err)
	}
}
