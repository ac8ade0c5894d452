//go:build gpu && cgo

// Cudnncheck asks NVIDIA's own cuDNN, on a machine without a GPU, for plans of all graphs that training and evaluation issue: for each
// model, precision and batch, and for cards of which the folder devices has the properties, as their data sheets give them. The graphs are
// those of package net. It writes a table of what cuDNN said, and fails where it has no plan.
package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/net"
	"onlinerna/cuda/number"
	"onlinerna/nn"
	"onlinerna/nn/machine"

	G "gorgonia.org/gorgonia"
)

//go:embed devices/*.json
var devices embed.FS

// card is a device of the folder.
type card struct {
	name, properties string
	driver.Info
}

func cardOf(name string) (card, error) {
	b, err := devices.ReadFile("devices/" + name + ".json")
	if err != nil {
		return card{}, fmt.Errorf("device %s: no file of it in devices", name)
	}
	var p struct {
		DeviceName          string
		DeviceVer           int
		MultiProcessorCount int
		TotalGlobalMem      int64
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return card{}, fmt.Errorf("device %s: %w", name, err)
	}
	return card{name, string(b), driver.Info{Name: p.DeviceName, Major: p.DeviceVer / 100, Minor: p.DeviceVer % 100 / 10,
		Multiprocessors: p.MultiProcessorCount, Memory: p.TotalGlobalMem}}, nil
}

// row is a line of the table: a graph, and what cuDNN has for it on each card.
type row struct {
	precision, graph, shape string
	models                  []string
	cells                   map[string]string // by card
}

func (r row) key() string { return strings.Join([]string{r.precision, r.graph, r.shape}, "\t") }

// cell says how many configurations modes A and FALLBACK of the heuristics gave, which engine makes the first plan within the options, its
// bytes of workspace, and the kernels that were compiled for it. Where no plan was made they are listed alone.
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

// short is a convolution in a word: taps/stride:inputs-outputs@height×width, and what is unusual.
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

// plan describes the programs of a model as training and evaluation make them.
func plan(d *net.Planner, model string, batch int, mode nn.Mode) error {
	m, err := nn.Build(model, nn.Config{Batch: batch, Mode: mode})
	if err != nil {
		return err
	}
	keep := append(G.Nodes{m.Score}, m.Updates...)
	if mode == nn.Train {
		keep = append(keep, m.Loss)
		for _, p := range m.Params {
			keep = append(keep, p.Grad)
		}
	} else {
		keep = append(keep, m.Logits)
	}
	_, err = machine.New(m.Graph, machine.Config{Device: d, Keep: keep})
	return err
}

// check plans models for a card, and adds what it finds to rows.
func check(rows map[string]*row, c card, p number.Precision, models []string, batches []int, compile string) error {
	for _, model := range models {
		h, err := dnn.Describe(c.properties)
		if err != nil {
			return err
		}
		d, err := net.NewPlanner(h, c.Info, net.Options{Precision: p})
		if err != nil {
			return err
		}
		for _, batch := range batches {
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				if err := plan(d, model, batch, mode); err != nil {
					return fmt.Errorf("%s, %v, %s at batch %d: %w", c.name, p, model, batch, err)
				}
			}
		}
		for _, x := range d.Plans() {
			key := row{precision: p.String(), graph: x.Graph().Name, shape: short(x.Shape())}
			r, ok := rows[key.key()]
			if !ok {
				key.cells = map[string]string{}
				r = &key
				rows[key.key()] = r
			}
			if !slices.Contains(r.models, model) {
				r.models = append(r.models, model)
			}
			if !x.Made() && (compile == "" || slices.Contains(strings.Split(compile, ","), c.name+"/"+p.String())) {
				if err := x.Make(); err != nil {
					r.cells[c.name] = "no plan"
					fmt.Fprintf(os.Stderr, "%s, %s: %v\n", c.name, r.key(), err)
					continue
				}
			}
			r.cells[c.name] = cell(x, p)
			if o := x.Options(); x.Workspace() > o.Workspace {
				return fmt.Errorf("%s, %s: a workspace of %d bytes, the limit is %d", c.name, r.key(), x.Workspace(), o.Workspace)
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
	models := flag.String("models", "", "models, by default all")
	precisions := flag.String("precisions", "float32,tf32,bfloat16,float16", "precisions")
	batches := flag.String("batches", "32,256", "batch sizes")
	table := flag.String("table", "", "file of the table: written, or with -compare compared with")
	compile := flag.String("compile", "", "where graphs of several operations are compiled, as h100/bfloat16, none for nowhere, by default everywhere")
	compare := flag.Bool("compare", false, "compare the lines that are made with those of the table")
	update := flag.Bool("update", false, "leave what the table says of other graphs and cards")
	flag.Parse()
	if err := run(*cards, *models, *precisions, *batches, *table, *compile, *compare, *update); err != nil {
		fmt.Fprintln(os.Stderr, "cudnncheck:", err)
		os.Exit(1)
	}
}

func run(cards, models, precisions, batches, table, compile string, compare, update bool) error {
	if err := lazy.CuDNN.Load(); err != nil {
		return err
	}
	var names []string
	for _, a := range nn.Architectures() {
		names = append(names, a.Name)
	}
	if models != "" {
		names = strings.Split(models, ",")
	}
	var sizes []int
	for _, b := range strings.Split(batches, ",") {
		n, err := strconv.Atoi(b)
		if err != nil {
			return err
		}
		sizes = append(sizes, n)
	}
	fmt.Fprintf(os.Stderr, "cuDNN %s, %s\n", dnn.Version(), lazy.CuDNN.File())
	rows := map[string]*row{}
	list := strings.Split(cards, ",")
	for _, name := range list {
		c, err := cardOf(name)
		if err != nil {
			return err
		}
		for _, precision := range strings.Split(precisions, ",") {
			p, err := number.ParsePrecision(precision)
			if err != nil {
				return err
			}
			start := time.Now()
			if err := check(rows, c, p, names, sizes, compile); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s, %v: %.1f s\n", name, p, time.Since(start).Seconds())
		}
	}
	if compare {
		return compared(rows, list, table)
	}
	if update {
		known, columns, err := read(table)
		if err != nil {
			return err
		}
		for key, old := range known {
			r, ok := rows[key]
			if !ok {
				rows[key] = old
				continue
			}
			for _, c := range columns {
				r.cells[c] = cmp.Or(r.cells[c], old.cells[c])
			}
			r.models = old.models
		}
		list = columns
	}
	text := fmt.Sprintf("# cuDNN %s\nprecision\tgraph\tconvolution\t%s\tmodels\n", dnn.Version(), strings.Join(list, "\t"))
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		r := rows[key]
		text += key
		for _, c := range list {
			text += "\t" + cmp.Or(r.cells[c], "-")
		}
		text += "\t" + strings.Join(r.models, " ") + "\n"
	}
	if table == "" {
		_, err := io.WriteString(os.Stdout, text)
		return err
	}
	return os.WriteFile(table, []byte(text), 0o644)
}

// read gives the rows of a table, by their keys, and its cards.
func read(table string) (rows map[string]*row, cards []string, err error) {
	b, err := os.ReadFile(table)
	if err != nil {
		return nil, nil, err
	}
	rows = map[string]*row{}
	for line := range strings.Lines(string(b)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		last := len(fields) - 1
		switch {
		case last < 4:
		case fields[0] == "precision":
			cards = fields[3:last]
		case last != 3+len(cards):
			return nil, nil, fmt.Errorf("%s: a line of %d columns, want %d: %q", table, len(fields), 4+len(cards), line)
		default:
			r := &row{precision: fields[0], graph: fields[1], shape: fields[2], models: strings.Fields(fields[last]), cells: map[string]string{}}
			for i, c := range cards {
				r.cells[c] = fields[3+i]
			}
			rows[r.key()] = r
		}
	}
	return rows, cards, nil
}

// compared says which rows are not in the table.
func compared(rows map[string]*row, cards []string, table string) error {
	known, _, err := read(table)
	if err != nil {
		return err
	}
	cells, bad := 0, 0
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		for _, c := range cards {
			cells++
			got, want := cmp.Or(rows[key].cells[c], "-"), ""
			if r, ok := known[key]; ok {
				want = r.cells[c]
			}
			if counts, listed := strings.CutSuffix(got, " listed"); listed && strings.HasPrefix(want, counts+" ") || got == want {
				continue
			} else {
				bad++
				fmt.Printf("%s, %s: %q, the table has %q\n", key, c, got, want)
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d plans are not as in %s: look at them and run make cudnn-check", bad, cells, table)
	}
	fmt.Printf("%d plans are as in %s\n", cells, table)
	return nil
}
