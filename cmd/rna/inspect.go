package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"onlinerna/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/rna"
	"onlinerna/train/extrapolate"
	"onlinerna/train/merge"
	"onlinerna/train/statedict"
)

type inspectFlags struct {
	windowFlags
	json    cli.JSON
	quiet   bool
	workers int
}

func newInspect() *cobra.Command {
	f := &inspectFlags{}
	cmd := &cobra.Command{
		Use:   "inspect FILE… [options]",
		Short: "Show tensors of checkpoints and what extrapolate would do",
		Long: `Show the tensors of checkpoints of all forms that rna merge reads: types, shapes, norms, shards. Of several files it
shows the distances from each to the next, and the coefficients that rna extrapolate would take, and the methods of rna merge. The folder of a run stands
for its best weights.`,
		Example: `  rna inspect model.safetensors
  rna inspect runs/fine
  rna inspect ckpt-*.pt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, _, err := expand(args, false, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			err = f.windowFlags.check(cmd.Flags(), len(args))
			if len(args) == 0 {
				err = fmt.Errorf("no files: name the checkpoints")
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Files")
	f.windowFlags.add(o)
	s := cli.NewGroup("Run")
	f.json.Add(s)
	s.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	s.Cores(&f.workers, "workers", "goroutines (default: one a core)")
	cli.AddGroups(cmd, o, s)
	return cmd
}

// inspection is what inspect found, as --json prints it. Norms that are not finite are strings.
type inspection struct {
	Files   []inspectedFile   `json:"files"`
	Tensors []inspectedTensor `json:"tensors"`
	RNA     *solution         `json:"rna,omitempty"`
	Merge   []merge.Method    `json:"merge,omitempty"` // the methods of rna merge that take so many files
}

type inspectedFile struct {
	Path     string            `json:"path"`
	Form     string            `json:"form"`
	Shards   int               `json:"shards"`  // files that hold the tensors
	Numbers  int64             `json:"numbers"` // elements of all weights
	Step     *int64            `json:"step,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Norm     number            `json:"norm"`               // of all weights
	Distance *number           `json:"distance,omitempty"` // of all weights, from the file before
}

type inspectedTensor struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	Shape     []int    `json:"shape"`
	Role      string   `json:"role"`
	Norms     []number `json:"norms,omitempty"`     // in each file
	Distances []number `json:"distances,omitempty"` // from each file to the next
}

// solution is what extrapolate would take by default, or why it would refuse.
type solution struct {
	Refused   string     `json:"refused,omitempty"`
	Residuals []residual `json:"residuals,omitempty"`
	NormC     float64    `json:"norm_c,omitempty"`
	Condition number     `json:"condition"`
	Lambda    float64    `json:"lambda"`
}

func (f *inspectFlags) run(ctx context.Context, args []string, out, log io.Writer) error {
	bar := terminal.NewBar(log, f.quiet)
	s, err := f.openWindow(args, extrapolate.Options{Workers: f.workers, Progress: bar.Add})
	if err != nil {
		return err
	}
	defer closeAll(s.Files())
	if found := s.Files()[0].Found; found != "" {
		fmt.Fprintln(log, found)
	}
	for _, c := range s.Files() {
		if c.What != "" {
			fmt.Fprintf(log, "%s %s\n", c.Path, c.What)
		}
	}
	bar.Start("reading", s.Bytes(len(s.Files()), extrapolate.CombineStats), terminal.CountBytes)
	norms, err := s.Norms(ctx)
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	in := newInspection(s, norms)
	if len(s.Pairs()) > 0 {
		bar.Start("solving", s.Bytes(len(s.Files()), extrapolate.KeepStats), terminal.CountBytes)
		in.RNA, err = solve(ctx, s)
		bar.Finish()
		if err != nil {
			return cli.Interrupted(ctx, err)
		}
	}
	return f.json.Write(out, in, in.print)
}

// solve finds out what extrapolate would do. A refusal is part of the answer.
func solve(ctx context.Context, s *extrapolate.Series) (*solution, error) {
	if err := s.Measure(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return &solution{Refused: err.Error()}, nil
	}
	res, err := s.Solve(rna.Options{})
	if err != nil {
		return nil, err
	}
	if err := res.Err(); err != nil {
		return &solution{Refused: err.Error()}, nil
	}
	sol := &solution{NormC: res.NormC, Condition: number(res.Condition), Lambda: res.Lambda}
	for j, p := range s.Pairs() {
		sol.Residuals = append(sol.Residuals, residual{s.Files()[p.X].Path, s.Files()[p.Y].Path, res.C[j], res.ResidualNorms[j]})
	}
	return sol, nil
}

func newInspection(s *extrapolate.Series, norms []extrapolate.Norms) *inspection {
	k := len(s.Files())
	in := &inspection{Merge: merge.For(k)}
	for _, c := range s.Files() {
		if c.Contents != statedict.Weights {
			in.Merge = nil
		}
	}
	total, moved := make([]float64, k), make([]float64, k)
	by := map[string]extrapolate.Norms{}
	for _, n := range norms {
		by[n.Name] = n
		if n.Role != extrapolate.Weight {
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
		file := inspectedFile{Path: c.Path, Form: string(c.File.Form), Shards: c.File.Shards, Metadata: c.Metadata, Norm: number(total[i])}
		for _, t := range c.Tensors {
			if t.Role == extrapolate.Weight {
				file.Numbers += int64(t.Len())
			}
		}
		if n, ok := c.Step(); ok {
			file.Step = &n
		}
		if d := number(moved[i]); i > 0 {
			file.Distance = &d
		}
		in.Files = append(in.Files, file)
	}
	for _, t := range s.Tensors() {
		row := inspectedTensor{Name: t.Name, Type: string(t.DType), Shape: t.Shape, Role: t.Role.String()}
		for _, v := range by[t.Name].Norm {
			row.Norms = append(row.Norms, number(v))
		}
		for _, v := range by[t.Name].Moved {
			row.Distances = append(row.Distances, number(v))
		}
		in.Tensors = append(in.Tensors, row)
	}
	return in
}

func (in *inspection) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	several := len(in.Files) > 1
	head := "TENSOR\tTYPE\tSHAPE\tROLE\tNORM"
	if several {
		head += "\tMOVED, LAST TWO FILES"
	}
	fmt.Fprintln(t, head)
	for _, x := range in.Tensors {
		fmt.Fprintf(t, "%s\t%s\t%v\t%s", x.Name, x.Type, x.Shape, x.Role)
		if n := len(x.Norms); n > 0 {
			fmt.Fprintf(t, "\t%.5g", float64(x.Norms[n-1]))
		}
		if n := len(x.Distances); n > 0 {
			fmt.Fprintf(t, "\t%.4g", float64(x.Distances[n-1]))
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "FILE\tFORM\tSHARDS\tWEIGHTS\tEPOCH OR STEP\tNORM OF WEIGHTS\tFROM THE FILE BEFORE")
	for _, f := range in.Files {
		step, distance := "", ""
		if f.Step != nil {
			step = fmt.Sprint(*f.Step)
		}
		if f.Distance != nil {
			distance = fmt.Sprintf("%.4g", float64(*f.Distance))
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%.6g\t%s\n", f.Path, f.Form, f.Shards, f.Numbers, step, float64(f.Norm), distance)
	}
	err := t.Flush()
	if err == nil && in.RNA != nil {
		err = in.RNA.print(w)
	}
	if err == nil && in.Merge != nil {
		_, err = fmt.Fprintf(w, "\nrna merge can combine them by %s\n", strings.Join(cli.Words(in.Merge), ", "))
	}
	return err
}

func (s *solution) print(w io.Writer) error {
	if s.Refused != "" {
		_, err := fmt.Fprintf(w, "\nrna extrapolate would refuse: %s\n", s.Refused)
		return err
	}
	fmt.Fprintf(w, "\nrna extrapolate would combine, with lambda %.3g:\n", s.Lambda)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "C\tX\tY")
	for _, v := range s.Residuals {
		fmt.Fprintf(t, "%.6f\t%s\t%s\n", v.C, v.X, v.Y)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "‖c‖ %.4g, condition %.3g\n", s.NormC, float64(s.Condition))
	return err
}
