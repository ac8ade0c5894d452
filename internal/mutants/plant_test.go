package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// One fault of each kind, and the function's result with it on.
func TestPlant(t *testing.T) {
	const source = `package main

import "math"

const two = 2

func f(x float64, n int) (y float64) {
	y = x + 1
	for i := range n {
		if i < two && x > 0 {
			y *= math.Sqrt(x)
		}
	}
	y = min(y, 1000)
	return y
}

func main() { println(int(f(4, 5))) }
`
	want := map[string]string{ // f(4, 5) is 20
		"operator | x + 1":             "12",  // (4 − 1)·2·2
		"operator | y *= math.Sqrt(x)": "1",   // 5/4
		"more | 1":                     "56",  // (4 + 10)·4
		"less | 1":                     "16",  // 4.1·4
		"boundary | i < two":           "40",  // one root more
		"negation | i < two":           "40",  // i = 2, 3, 4
		"more | two":                   "40",  // i < 3
		"less | two":                   "10",  // i < 1
		"logic | i < two && x > 0":     "160", // five roots
		"function | math.Sqrt(x)":      "80",  // two fours
		"function | min(y, 1000)":      "1000",
		"omission | y = min(y, 1000)":  "20",
		"omission | y *= math.Sqrt(x)": "5",
		"omission | y = x + 1":         "0",
		"negation | x > 0":             "5",
		"negation | i < two && x > 0":  "40",
		"more | 1000":                  "20",
		"less | 1000":                  "20",
		"more | 0":                     "20",
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "f.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}}
	all, err := list("math")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&types.Config{Importer: exports(fset, all)}).Check("main", fset, []*ast.File{f}, info); err != nil {
		t.Fatal(err)
	}
	var faults []fault
	out := plant(fset, info, f, []byte(source), "f.go", &faults)
	folder := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module f\n\ngo 1.25\n", "f.go": string(out),
		"fault_switch.go": "package main\n\n" + switchSource} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "f", ".")
	build.Dir = folder
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, text, out)
	}
	result := func(id int) string {
		cmd := exec.Command(filepath.Join(folder, "f"))
		cmd.Env = append(os.Environ(), "FAULT_ID="+strconv.Itoa(id))
		text, _ := cmd.CombinedOutput()
		return strings.TrimSpace(string(text))
	}
	if got := result(0); got != "20" {
		t.Fatalf("without a fault: %s", got)
	}
	found := map[string]bool{}
	for _, f := range faults {
		name := f.kind + " | " + f.text
		found[name] = true
		if w, ok := want[name]; f.name == "f" && ok && w != result(f.id) {
			t.Errorf("%s: %s, want %s", name, result(f.id), w)
		}
	}
	for name := range want {
		if !found[name] && name != "negation | i < two && x > 0" {
			t.Errorf("%s is not planted", name)
		}
	}
}

// A sample does not depend on the lines around a fault, and grows with the share. Samples of two seeds share no more
// than chance would have it.
func TestSample(t *testing.T) {
	var faults []fault
	for i := range 2000 {
		faults = append(faults, fault{id: i, file: "f.go", name: "f", kind: "more", text: strconv.Itoa(i / 2)})
	}
	all := regexp.MustCompile("")
	of := func(share float64, seed uint64, match *regexp.Regexp) []fault {
		return sample(faults, sampling{share, seed, match})
	}
	few, more := of(.1, 0, all), of(.2, 0, all)
	if len(few) < 120 || len(few) > 280 || len(of(1, 0, all)) != len(faults) || len(of(0, 0, all)) != 0 {
		t.Errorf("%d of %d faults are a tenth", len(few), len(faults))
	}
	in := map[string]bool{}
	for _, f := range more {
		in[f.key] = true
	}
	for _, f := range few {
		if !in[f.key] {
			t.Errorf("%s is in a tenth and not in a fifth", f.key)
		}
	}
	both, other := 0, of(.2, 1, all)
	for _, f := range other {
		if in[f.key] {
			both++
		}
	}
	if len(other) < 240 || len(other) > 560 || both < 40 || both > 120 { // 400 and 80 are expected
		t.Errorf("%d faults of a second sample, %d of them in the first", len(other), both)
	}
	if got := of(1, 1, regexp.MustCompile(`more \| 17$`)); len(got) != 1 || got[0].text != "17" {
		t.Errorf("a match gives %v", got)
	}
}
