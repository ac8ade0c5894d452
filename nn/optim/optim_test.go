package optim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op/update"
)

var rewrite = flag.Bool("update", false, "write the table of docs/optimizers.md")

const page = "../../docs/optimizers.md"

// table lists the optimisers for the page.
func table() string {
	var b strings.Builder
	b.WriteString("| `--optimizer` | name | `--lr` | `--weight-decay` | takes, with defaults | state |\n|-|-|-|-|-|-|\n")
	byData := func(x float64) string {
		if x == 0 {
			return "by the data"
		}
		return fmt.Sprint(x)
	}
	for _, d := range All() {
		var takes []string
		for _, name := range slices.Sorted(maps.Keys(d.Takes)) {
			takes = append(takes, fmt.Sprintf("`--%s` %g", name, d.Takes[name]))
		}
		if d.Nesterov {
			takes = append(takes, "`--nesterov`")
		}
		state := d.Make(Hyper{Of: d.Takes}).State()
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | `%s` |\n", d.Name, d.Title, byData(d.Rate), byData(d.Decay),
			strings.Join(takes, ", "), strings.Join(state, "`, `"))
	}
	return b.String()
}

// TestPage compares the table of docs/optimizers.md with the definitions; -update writes it.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	first := strings.Index(text, "| `--optimizer`")
	end := first + strings.Index(text[max(first, 0):], "\n\n") + 1
	if first < 0 || end <= first {
		t.Fatal("docs/optimizers.md has no table of optimisers")
	}
	if text[first:end] == table() {
		return
	}
	if !*rewrite {
		t.Fatal("the table of docs/optimizers.md is not that of the definitions: go test ./nn/optim -run TestPage -update")
	}
	if err := os.WriteFile(page, []byte(text[:first]+table()+text[end:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDefinitions checks that the definitions are whole: names and state are different ones, and passes compile.
func TestDefinitions(t *testing.T) {
	names := map[string]bool{}
	for _, d := range All() {
		o := d.Make(Hyper{Of: d.Takes, Decay: .1})
		if names[d.Name] || names[d.Title] || d.Name != o.Name() {
			t.Errorf("%s, %s: the optimiser calls itself %s, or another has the name", d.Name, d.Title, o.Name())
		}
		names[d.Name], names[d.Title] = true, true
		if err := o.Check(); err != nil {
			t.Errorf("%s with its defaults: %v", d.Name, err)
		}
		if n := len(o.State()); n > update.MaxState || n == 2 && o.State()[0] == o.State()[1] {
			t.Errorf("%s has the state %v", d.Name, o.State())
		}
		if o != d.Make(Hyper{Of: d.Takes, Decay: .1}) {
			t.Errorf("%s: equal hyperparameters make different optimisers", d.Name)
		}
		for _, p := range o.Passes() {
			update.Compile(&p)
			for i, e := range p.State {
				if e.Valid() && i >= len(o.State()) {
					t.Errorf("%s writes a vector of state that it does not name", d.Name)
				}
			}
		}
	}
	for _, o := range []device.Optimizer{SGD{Momentum: -1}, AdamW{Beta1: 1}, Adam{Beta2: -1}, LARS{Momentum: .9},
		LAMB{Eps: -1}, Lion{Beta1: 1}, RMSprop{Beta2: 1}, Muon{Momentum: 1}, ScheduleFreeSGD{}, ScheduleFreeSGD{Momentum: 1},
		ScheduleFreeAdamW{Beta2: .9}} {
		if o.Check() == nil {
			t.Errorf("%s %+v: no error", o.Name(), o)
		}
	}
}
