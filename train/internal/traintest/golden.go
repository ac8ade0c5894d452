package traintest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

// Small registers two linear nets of the means of an image's quarters, small-norm with batch normalisation and
// small-plain without. Golden files hold their numbers, in float64 on the reference device, where processors differ in
// the last digits alone.
var Small = sync.OnceFunc(func() {
	net := func(name string, norm bool) {
		nn.Register(nn.Architecture{Name: name, Family: "small", Size: 4, Channels: 1, Classes: 2,
			Build: func(b *nn.Builder, x *G.Node) *G.Node {
				half := b.Config().Size / 2
				x = b.AvgPool("pool", x, half, half, 0)
				if norm {
					x = b.BatchNorm("norm", x, 1)
				}
				return b.Linear("fc", b.Flatten("flatten", x), b.Config().Classes)
			}})
	}
	net("small-norm", true)
	net("small-plain", false)
})

// Lines writes a value of the form of JSON, a field a line; a list of numbers or texts is one line.
func Lines(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	lines(&text, "", tree)
	return text.String()
}

func lines(text *strings.Builder, path string, tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			lines(text, strings.TrimPrefix(path+"."+key, "."), tree[key])
		}
		return
	case []any:
		if slices.ContainsFunc(tree, func(x any) bool {
			switch x.(type) {
			case map[string]any, []any:
				return true
			}
			return false
		}) {
			for i, x := range tree {
				lines(text, fmt.Sprintf("%s[%d]", path, i), x)
			}
			return
		}
		fmt.Fprintf(text, "%s:", path)
		for _, x := range tree {
			fmt.Fprintf(text, " %s", scalar(x))
		}
		text.WriteByte('\n')
		return
	}
	fmt.Fprintf(text, "%s: %s\n", path, scalar(tree))
}

func scalar(x any) string {
	if x, ok := x.(float64); ok {
		return fmt.Sprintf("%.12g", x)
	}
	return fmt.Sprint(x)
}

// Row writes numbers with 12 digits.
func Row(x []float64) string {
	list := make([]string, len(x))
	for i, v := range x {
		list[i] = scalar(v)
	}
	return strings.Join(list, " ")
}
