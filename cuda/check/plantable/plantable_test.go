package plantable

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const small = "# cuDNN 9.1.0\n" +
	"precision\tgraph\tconvolution\ta100\th100\tmodels\n" +
	"bfloat16\tforward\t1x1:8-8@4x4,n2\t3+1 e22 0\t4+1 e62 131\tlenet resnet50\n" +
	"bfloat16\tforward + sums\t1x1:8-8@4x4,n2\t3+1 listed\t4+1 e62 131\tresnet50\n"

func parse(t *testing.T, text string) *Table {
	t.Helper()
	x, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Reading and writing the repository's table does not change it.
func TestRoundTrip(t *testing.T) {
	const file = "../cudnn/table.tsv"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if x.String() != string(b) {
		t.Error("the table changes when it is read and written")
	}
	if y := parse(t, small); y.String() != small || y.Totals() !=
		"cuDNN 9.1.0 plans 1 of 1 convolutions, and has compiled 0 of 1 fused with the operations around them" {
		t.Errorf("%s: %s", y, y.Totals())
	}
	for _, bad := range []string{"", "# cuDNN 9\n", "# cuDNN 9\nprecision\tgraph\tconvolution\tmodels\n", "x\ny\n",
		small + "too\tshort\n"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is a table", bad)
		}
	}
}

// New cells replace old ones; all others stay.
func TestUpdate(t *testing.T) {
	by := &Table{Version: "9.1.0", Cards: []string{"h100"}, Rows: map[string]*Row{}}
	by.Row("bfloat16", "forward", "1x1:8-8@4x4,n2", "resnet18").Cells["h100"] = "5+1 e70 0"
	by.Row("bfloat16", "forward", "3x3:8-8@4x4,n2", "resnet18").Cells["h100"] = "6+1 e70 0"
	x := parse(t, small)
	if err := x.Update(by, []string{"lenet", "resnet18", "resnet50"}); err != nil {
		t.Fatal(err)
	}
	want := "# cuDNN 9.1.0\n" +
		"precision\tgraph\tconvolution\ta100\th100\tmodels\n" +
		"bfloat16\tforward + sums\t1x1:8-8@4x4,n2\t3+1 listed\t4+1 e62 131\tresnet50\n" +
		"bfloat16\tforward\t1x1:8-8@4x4,n2\t3+1 e22 0\t5+1 e70 0\tlenet resnet18 resnet50\n" +
		"bfloat16\tforward\t3x3:8-8@4x4,n2\t-\t6+1 e70 0\tresnet18\n"
	if got := strings.Split(x.String(), "\n"); !sameLines(got, strings.Split(want, "\n")) {
		t.Errorf("%s\nwant\n%s", x, want)
	}
	x.Row("float16", "attention", "197 tokens", "vit").Cells = map[string]string{"a100": "3+0 e1 0", "h100": "4+0 e2 0"}
	x.Row("float16", "attention gradient", "197 tokens", "vit").Cells = map[string]string{"h100": "4+0 e6 256"}
	if got := x.Attentions(); got != "cuDNN 9.1.0 has compiled 1 of 2 graphs" {
		t.Errorf("attention: %s", got)
	}
	by.Version = "9.2.0"
	if err := x.Update(by, nil); err == nil || !strings.Contains(err.Error(), "for cuDNN 9.1.0, and this is 9.2.0") {
		t.Errorf("another cuDNN: %v", err)
	}
	by.Version, by.Cards = "9.1.0", []string{"b200"}
	if err := x.Update(by, nil); err == nil || !strings.Contains(err.Error(), "no column for b200") {
		t.Errorf("another card: %v", err)
	}
}

// sameLines compares lines, in any order.
func sameLines(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Plans differ if their cells do; a graph that was only listed agrees with a plan from as many configurations.
func TestDifferences(t *testing.T) {
	known, other := parse(t, small), &Table{Version: "9.1.0", Cards: []string{"h100"}, Rows: map[string]*Row{}}
	sums := other.Row("bfloat16", "forward + sums", "1x1:8-8@4x4,n2", "resnet50")
	for cell, bad := range map[string]int{"4+1 listed": 0, "4+1 e62 131": 0, "5+1 listed": 1, "4+1 e70 131": 1,
		"no plan": 1} {
		sums.Cells["h100"] = cell
		if lines, cells := known.Differences(other); len(lines) != bad || cells != 1 {
			t.Errorf("%s: %d cells, %q", cell, cells, lines)
		}
	}
	sums.Cells["h100"], other.Version = "no plan", "9.2.0"
	other.Row("bfloat16", "forward", "9x9", "lenet").Cells["h100"] = "1+1 e1 0"
	if lines, cells := known.Differences(other); len(lines) != 3 || cells != 2 {
		t.Errorf("%d cells, %q", cells, lines)
	}
}
