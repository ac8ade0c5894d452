package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestConfusion(t *testing.T) {
	var b strings.Builder
	if err := Confusion(&b, "svg", "x<y>", []string{"cat", "dog & co", "none"}, [][]int{{17, 3, 0}, {1, 41, 0},
		{0, 0, 0}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">17<", ">3<", ">41<", ">cat<", ">predicted<", "dog &amp; co"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	// Shares of .85, .15, 1/42 and 41/42 have colours of their own.
	fills := map[string]bool{}
	for _, m := range regexp.MustCompile(`fill:(#[0-9A-Fa-f]{6})`).FindAllStringSubmatch(b.String(), -1) {
		fills[m[1]] = true
	}
	if len(fills) < 5 { // with white or black
		t.Errorf("colours %v", fills)
	}
	// The name of a row is at the height of its counts.
	height := func(text string) (list []float64) {
		element := regexp.MustCompile(`<text x="[^"]*" y="([^"]*)"[^>]*>([^<]*)</text>`)
		for _, m := range element.FindAllStringSubmatch(b.String(), -1) {
			if y, err := strconv.ParseFloat(strings.TrimSuffix(m[1], "pt"), 64); err == nil && m[2] == text {
				list = append(list, y)
			}
		}
		return list
	}
	for count, name := range map[string]string{"17": "cat", "41": "dog &amp; co"} {
		at := height(count)
		if len(at) != 1 || !slices.ContainsFunc(height(name), func(y float64) bool { return math.Abs(y-at[0]) < 6 }) {
			t.Errorf("%s at %v, %s at %v", count, at, name, height(name))
		}
	}
	// Of 70 classes every seventh is named.
	var many []string
	counts := make([][]int, 70)
	for i := range counts {
		many = append(many, fmt.Sprint("class ", i))
		counts[i] = make([]int, 70)
		counts[i][i] = 1
	}
	var large strings.Builder
	if err := Confusion(&large, "svg", "x", many, counts); err != nil {
		t.Fatal(err)
	}
	for i, name := range many {
		if got := strings.Count(large.String(), ">"+name+"<"); got != map[bool]int{true: 2}[i%7 == 0] {
			t.Errorf("%s is there %d times", name, got)
		}
	}
	if strings.Contains(b.String(), ">none<") {
		t.Error("a class that does not occur is drawn")
	}
	if strings.Contains(b.String(), "NaN") {
		t.Error("the SVG contains what is no number")
	}
	g := confusion{{3, 1}, {0, 0}} // the first label is on top
	if g.Z(0, 1) != 0.75 || g.Z(1, 1) != 0.25 || !math.IsNaN(g.Z(0, 0)) {
		t.Errorf("%g %g %g", g.Z(0, 1), g.Z(1, 1), g.Z(0, 0))
	}
	if Confusion(&b, "svg", "", []string{"one"}, [][]int{{1}}) == nil {
		t.Error("a matrix of one class is drawn")
	}
}
