//go:build gpu && cgo

// Cudnncheck asks NVIDIA's own cuDNN, on a machine without a GPU, for plans of all graphs in training and evaluation:
// for each model, precision and batch size, and for cards of package dnn, whose properties are from their data sheets.
// The graphs are those of package net. It writes a table of cuDNN's answers and fails if some graph has no plan.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"onlinerna/cuda/check/plantable"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/net"
	"onlinerna/cuda/number"
	"onlinerna/nn"
	"onlinerna/nn/machine"
	_ "onlinerna/nn/zoo"
)

// card is a card of package dnn.
type card struct{ name, properties string }

func cardOf(name string) (card, error) {
	properties, err := dnn.Card(name)
	return card{name, properties}, err
}

// cell lists the numbers of configurations from modes A and FALLBACK of the heuristics, the engine of the first plan
// within the options, its workspace in bytes, and its compiled kernels. Without a plan it lists only the numbers.
func cell(x *dnn.Plans, p number.Precision) string {
	counts := make([]string, len(x.Configurations()))
	for i, n := range x.Configurations() {
		counts[i] = strconv.Itoa(n)
	}
	text := fmt.Sprintf("%s e%d %d", strings.Join(counts, "+"), x.Engine().Number, x.Workspace())
	if !x.Made() {
		return strings.Join(counts, "+") + " listed"
	}
	if q := x.Options().Precision; q != p {
		text += " " + q.String()
	}
	return strings.Join(append([]string{text}, x.Kernels()...), " ")
}

// short writes a convolution as one word: taps/stride:inputs-outputs@height×width, and unusual settings.
func short(s dnn.Shape) string {
	t := fmt.Sprintf("%dx%d", s.KH, s.KW)
	if s.Stride != [2]int{1, 1} {
		t += fmt.Sprintf("/%d", s.Stride[0])
	}
	t += fmt.Sprintf(":%d-%d@%dx%d", s.C, s.O, s.H, s.W)
	if s.Pad != [2]int{(s.KH - 1) / 2, (s.KW - 1) / 2} {
		t += fmt.Sprintf(",pad%d", s.Pad[0])
	}
	if s.Groups != 1 {
		t += fmt.Sprintf(",groups%d", s.Groups)
	}
	if s.Dilation != [2]int{1, 1} {
		t += fmt.Sprintf(",dilation%d", s.Dilation[0])
	}
	return fmt.Sprintf("%s,n%d", t, s.N)
}

// job selects graphs and cards.
type job struct {
	cards, models []string
	precisions    []number.Precision
	batches       []int
	// card/precision, ... for which graphs of several operations are compiled; none for nowhere, empty for everywhere
	compile string
}

// compiled reports whether graphs of several operations are compiled.
func (j job) compiled(c card, p number.Precision) bool {
	return j.compile == "" || slices.Contains(strings.Split(j.compile, ","), c.name+"/"+p.String())
}

// table plans all graphs.
func (j job) table() (*plantable.Table, error) {
	t := &plantable.Table{Version: dnn.Version(), Cards: j.cards, Rows: map[string]*plantable.Row{}}
	for _, name := range j.cards {
		c, err := cardOf(name)
		if err != nil {
			return nil, err
		}
		for _, p := range j.precisions {
			start := time.Now()
			if err := j.check(t, c, p); err != nil {
				return nil, err
			}
			fmt.Fprintf(os.Stderr, "%s, %v: %.1f s\n", name, p, time.Since(start).Seconds())
		}
	}
	return t, nil
}

// check plans models for a card and adds the results to the table.
func (j job) check(t *plantable.Table, c card, p number.Precision) error {
	for _, model := range j.models {
		h, err := dnn.Describe(c.properties)
		if err != nil {
			return err
		}
		d, err := net.NewPlanner(h, net.Options{Precision: p})
		if err != nil {
			return err
		}
		for _, batch := range j.batches {
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				if err := machine.Describe(d, model, batch, mode); err != nil {
					return fmt.Errorf("%s, %v, %s at batch %d: %w", c.name, p, model, batch, err)
				}
			}
		}
		for _, x := range d.Plans() {
			of := short(x.Shape())
			if a := x.Graph().Attention(); a != (dnn.Attention{}) {
				of = fmt.Sprintf("%d tokens, %d heads of %d,n%d", a.Tokens, a.Heads, a.Width, a.Sequences)
			}
			r := t.Row(p.String(), x.Graph().Name, of, model)
			if !x.Made() && j.compiled(c, p) {
				if err := x.Make(); err != nil {
					r.Cells[c.name] = "no plan"
					fmt.Fprintf(os.Stderr, "%s, %s: %v\n", c.name, r.Key(), err)
					continue
				}
			}
			r.Cells[c.name] = cell(x, p)
			if o := x.Options(); x.Workspace() > o.Workspace {
				return fmt.Errorf("%s, %s: a workspace of %d bytes, the limit is %d", c.name, r.Key(), x.Workspace(),
					o.Workspace)
			}
		}
		if err := d.Close(); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	cards := flag.String("cards", "a100,h100,b200", "devices")
	models := flag.String("models", "", "models, by default LeNet, Conv-6 and the residual nets")
	precisions := flag.String("precisions", "float32,tf32,bfloat16,float16", "precisions")
	batches := flag.String("batches", "32,256", "batch sizes")
	table := flag.String("table", "", "table file to write, or to compare with under -compare")
	compile := flag.String("compile", "",
		"cards and precisions for which graphs of several operations are compiled, such as h100/bfloat16; none for "+
			"nowhere; by default everywhere")
	compare := flag.Bool("compare", false, "compare the new lines with those of the table")
	update := flag.Bool("update", false, "keep the table's lines for other graphs and cards")
	flag.Parse()
	j, err := newJob(*cards, *models, *precisions, *batches, *compile)
	if err == nil {
		err = run(j, *table, *compare, *update)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cudnncheck:", err)
		os.Exit(1)
	}
}

// architectures lists the names of all models, or of the residual nets, LeNet and Conv-6.
func architectures(all bool) (names []string) {
	for _, a := range nn.Architectures() {
		if all || slices.Contains([]string{"conv6", "lenet", "resnet"}, a.Family) {
			names = append(names, a.Name)
		}
	}
	return names
}

// newJob parses comma-separated lists.
func newJob(cards, models, precisions, batches, compile string) (j job, err error) {
	j = job{cards: strings.Split(cards, ","), models: architectures(false), compile: compile}
	if models != "" {
		j.models = strings.Split(models, ",")
	}
	for _, s := range strings.Split(precisions, ",") {
		p, err := number.ParsePrecision(s)
		if err != nil {
			return j, err
		}
		j.precisions = append(j.precisions, p)
	}
	for _, s := range strings.Split(batches, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return j, err
		}
		j.batches = append(j.batches, n)
	}
	return j, nil
}

// run makes a table, and compares it with a file, updates the file or writes it. Errors in the file show before
// planning.
func run(j job, file string, compare, update bool) error {
	if err := lazy.CuDNN.Load(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "cuDNN %s, %s\n", dnn.Version(), lazy.CuDNN.File())
	var known *plantable.Table
	if compare || update {
		var err error
		if known, err = plantable.Read(file); err != nil {
			return err
		}
		if update { // an empty update checks that updating is possible
			if err := known.Update(&plantable.Table{Version: dnn.Version(), Cards: j.cards}, nil); err != nil {
				return err
			}
		}
	}
	t, err := j.table()
	if err != nil {
		return err
	}
	switch {
	case compare:
		return compared(known, t, file)
	case update:
		if err := known.Update(t, architectures(true)); err != nil {
			return err
		}
		t = known
	}
	if file == "" {
		_, err := io.WriteString(os.Stdout, t.String())
		return err
	}
	return os.WriteFile(file, []byte(t.String()), 0o644)
}

// compared lists the plans that are not in the table.
func compared(known, t *plantable.Table, file string) error {
	lines, cells := known.Differences(t)
	for _, line := range lines {
		fmt.Println(line)
	}
	if len(lines) > 0 {
		return fmt.Errorf("%d of %d plans differ from %s: look at them and run make check-cudnn", len(lines), cells,
			file)
	}
	fmt.Printf("%d plans are the same as in %s\n", cells, file)
	return nil
}
