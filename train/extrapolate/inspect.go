package extrapolate

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/rna"
)

// Inspection shows the tensors of files, and their extrapolation.
type Inspection struct {
	Files   []InspectedFile   `json:"files"`
	Tensors []InspectedTensor `json:"tensors"`
	RNA     *Solution         `json:"rna,omitempty"`
	// Differences are the tensors that not all files have, or that differ in shape or type.
	Differences []string `json:"differences,omitempty"`
	// Merge are the methods of rna merge for the files, With the options that it needs, Refused its error.
	Merge   []string `json:"merge,omitempty"`
	With    string   `json:"merge_with,omitempty"`
	Refused string   `json:"merge_refused,omitempty"`
}

// InspectedFile is one of the files.
type InspectedFile struct {
	Path     string            `json:"path"`
	Form     string            `json:"form"`
	Shards   int               `json:"shards"`  // files that hold the tensors
	Numbers  int64             `json:"numbers"` // elements of all weights
	Step     *int64            `json:"step,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Norm     Number            `json:"norm"`               // of all weights
	Distance *Number           `json:"distance,omitempty"` // of all weights, from the previous file
}

// InspectedTensor is a tensor in all files.
type InspectedTensor struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	Shape     []int    `json:"shape"`
	Role      string   `json:"role"`
	Norms     []Number `json:"norms,omitempty"`     // in each file
	Distances []Number `json:"distances,omitempty"` // from each file to the next
}

// Solution is the extrapolation with default options, or the reason for a refusal.
type Solution struct {
	Refused   string     `json:"refused,omitempty"`
	Residuals []Residual `json:"residuals,omitempty"`
	NormC     float64    `json:"norm_c,omitempty"`
	Condition Number     `json:"condition"`
	Lambda    float64    `json:"lambda"`
}

// Inspect reads the tensors of the files and solves for the coefficients. start receives the next part of the work, and
// its bytes. A refusal is part of the result.
func (s *Series) Inspect(ctx context.Context, start func(part string, bytes int64)) (*Inspection, error) {
	start("reading", s.Bytes(len(s.Files()), CombineStats))
	norms, err := s.Norms(ctx)
	if err != nil {
		return nil, err
	}
	in := newInspection(s, norms)
	if len(s.Pairs()) > 0 {
		start("solving", s.Bytes(len(s.Files()), KeepStats))
		in.RNA, err = s.solution(ctx)
	}
	return in, err
}

// solution solves with default options.
func (s *Series) solution(ctx context.Context) (*Solution, error) {
	if err := s.Measure(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return &Solution{Refused: err.Error()}, nil
	}
	res, err := s.Solve(rna.Options{})
	if err != nil {
		return nil, err
	}
	if err := res.Err(); err != nil {
		return &Solution{Refused: err.Error()}, nil
	}
	sol := &Solution{NormC: res.NormC, Condition: Number(res.Condition), Lambda: res.Lambda}
	for j, p := range s.Pairs() {
		sol.Residuals = append(sol.Residuals, Residual{s.Files()[p.X].Path, s.Files()[p.Y].Path, res.C[j],
			res.ResidualNorms[j]})
	}
	return sol, nil
}

func newInspection(s *Series, norms []Norms) *Inspection {
	in := &Inspection{Differences: s.Left()}
	k := len(s.Files())
	total, moved := make([]float64, k), make([]float64, k)
	by := map[string]Norms{}
	for _, n := range norms {
		by[n.Name] = n
		if n.Role != Weight {
			continue
		}
		for i, v := range n.Norm {
			total[i] = math.Hypot(total[i], v)
		}
		for i, v := range n.Moved {
			moved[i+1] = math.Hypot(moved[i+1], v)
		}
	}
	for i, c := range s.Files() {
		file := InspectedFile{Path: c.Path, Form: string(c.File.Form), Shards: c.File.Shards, Metadata: c.Metadata,
			Norm: Number(total[i])}
		for _, t := range s.Tensors() {
			if t.Role == Weight {
				file.Numbers += int64(t.Len())
			}
		}
		if n, ok := c.Step(); ok {
			file.Step = &n
		}
		if d := Number(moved[i]); i > 0 {
			file.Distance = &d
		}
		in.Files = append(in.Files, file)
	}
	for _, t := range s.Tensors() {
		row := InspectedTensor{Name: t.Name, Type: string(t.DType), Shape: t.Shape, Role: t.Role.String()}
		for _, v := range by[t.Name].Norm {
			row.Norms = append(row.Norms, Number(v))
		}
		for _, v := range by[t.Name].Moved {
			row.Distances = append(row.Distances, Number(v))
		}
		in.Tensors = append(in.Tensors, row)
	}
	return in
}

// WriteTable writes the tensors, the files and the coefficients.
func (in *Inspection) WriteTable(w io.Writer) error {
	page := terminal.NewPage(w)
	rows := [][]string{{"TENSOR", "TYPE", "SHAPE", "ROLE", "NORM"}}
	if len(in.Files) > 1 {
		rows[0] = append(rows[0], "MOVED, LAST TWO FILES")
	}
	for _, x := range in.Tensors {
		row := []string{x.Name, x.Type, fmt.Sprint(x.Shape), x.Role}
		if n := len(x.Norms); n > 0 {
			row = append(row, fmt.Sprintf("%.5g", float64(x.Norms[n-1])))
		}
		if n := len(x.Distances); n > 0 {
			row = append(row, fmt.Sprintf("%.4g", float64(x.Distances[n-1])))
		}
		rows = append(rows, row)
	}
	page.LeftTable(rows)
	page.WriteString("\n")
	rows = [][]string{{"FILE", "FORM", "SHARDS", "WEIGHTS", "EPOCH OR STEP", "NORM OF WEIGHTS",
		"FROM THE FILE BEFORE"}}
	for _, f := range in.Files {
		row := []string{f.Path, f.Form, fmt.Sprint(f.Shards), fmt.Sprint(f.Numbers), "",
			fmt.Sprintf("%.6g", float64(f.Norm)), ""}
		if f.Step != nil {
			row[4] = fmt.Sprint(*f.Step)
		}
		if f.Distance != nil {
			row[6] = fmt.Sprintf("%.4g", float64(*f.Distance))
		}
		rows = append(rows, row)
	}
	page.LeftTable(rows)
	in.RNA.write(page)
	if n := len(in.Differences); n > 0 {
		fmt.Fprintf(page, "\nnot compared, %d:\n", n)
		for _, line := range in.Differences[:min(n, maxLines)] {
			fmt.Fprintf(page, "  %s\n", line)
		}
		if n > maxLines {
			fmt.Fprintf(page, "  and %d more: see --json\n", n-maxLines)
		}
	}
	switch {
	case in.Refused != "":
		fmt.Fprintf(page, "\nrna merge would refuse: %s\n", in.Refused)
	case in.Merge != nil:
		fmt.Fprintf(page, "\nrna merge%s can combine them by %s\n", in.With, strings.Join(in.Merge, ", "))
	}
	return page.Flush(w)
}

func (s *Solution) write(page *terminal.Page) {
	switch {
	case s == nil:
		return
	case s.Refused != "":
		fmt.Fprintf(page, "\nrna extrapolate would refuse: %s\n", s.Refused)
		return
	}
	fmt.Fprintf(page, "\nrna extrapolate would combine, with lambda %.3g:\n", s.Lambda)
	rows := [][]string{{"X", "Y", "C"}}
	for _, v := range s.Residuals {
		rows = append(rows, []string{v.X, v.Y, fmt.Sprintf("%.6f", v.C)})
	}
	page.LeftTable(rows)
	fmt.Fprintf(page, "‖c‖ %.4g, condition %.3g\n", s.NormC, float64(s.Condition))
}
