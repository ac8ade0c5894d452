package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data/augment"
	"onlinerna/internal/nearest"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/network"
	"onlinerna/train/recipe"
)

func newModels() *cobra.Command {
	family := ""
	c := &cobra.Command{
		Use:   "models [MODEL]",
		Short: "List the models, or describe one",
		Long: `List the models, or describe one. A pattern with * and ?, in quotes for the shell, lists those whose names it
matches.`,
		Example: `  rna models
  rna models 'vit_*_384'
  rna models --family vgg
  rna models vgg16`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return modelNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || strings.ContainsAny(args[0], "*?[") {
				return listModels(cmd.OutOrStdout(), family, strings.Join(args, ""))
			}
			if family != "" {
				return fmt.Errorf("%s is one model: give it or --family", args[0])
			}
			return describeModel(cmd.OutOrStdout(), args[0])
		},
	}
	c.Flags().StringVar(&family, "family", "", "list the models of this `family` alone, as vgg")
	c.Flags().SetAnnotation("family", cli.ValuesKey, families()) // the flag is there
	return c
}

// families lists the families of the models.
func families() (list []string) {
	for _, a := range nn.Architectures() {
		if !slices.Contains(list, a.Family) {
			list = append(list, a.Family)
		}
	}
	slices.Sort(list)
	return list
}

// familyNear is the family that a wrong name may mean: that of a model whose name begins with it, as vgg for repvgg, or
// one of a like name; "" without any.
func familyNear(name string) string {
	for _, a := range nn.Architectures() {
		if name != "" && strings.HasPrefix(a.Name, name) {
			return a.Family
		}
	}
	return nearest.To(name, families())
}

// listModels writes a table of the models of a family or a pattern, or of all models.
func listModels(out io.Writer, family, pattern string) error {
	if family != "" && !slices.Contains(families(), family) {
		hint := ""
		if n := familyNear(family); n != "" {
			hint = fmt.Sprintf(", did you mean %q?", n)
		}
		return fmt.Errorf("unknown family %q%s (known: %s)", family, hint, strings.Join(families(), ", "))
	}
	rows := [][]string{{"NAME", "PARAMETERS", "INPUT", "CLASSES", "DESCRIPTION"}}
	var references []string
	for _, a := range nn.Architectures() {
		matched, err := path.Match(cmp.Or(pattern, "*"), a.Name)
		if err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if !matched || family != "" && a.Family != family {
			continue
		}
		parameters := "" // of a net that is not in the table
		if s, ok := a.Sizes(); ok {
			parameters = text.Thousands(s.Parameters)
		}
		rows = append(rows, []string{a.Name, parameters, inputOf(a), fmt.Sprint(a.Classes), a.Summary})
		if !slices.Contains(references, a.Reference) {
			references = append(references, a.Reference)
		}
	}
	aliases := nn.Aliases()
	maps.DeleteFunc(aliases, func(alias, name string) bool {
		matched, _ := path.Match(pattern, alias)
		a, _ := nn.Lookup(name)
		return !matched || family != "" && a.Family != family
	})
	if len(rows) == 1 && len(aliases) == 0 {
		of := ""
		if family != "" {
			of = " of the family " + family
		}
		return fmt.Errorf("no model%s has a name that matches %s", of, pattern)
	}
	page := terminal.NewPage(out)
	if len(rows) > 1 {
		page.List(rows)
		page.WriteString(strings.Repeat("\n", min(len(aliases), 1)))
	}
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		fmt.Fprintf(page, "%s is %s\n", alias, aliases[alias])
	}
	if family == "" && pattern == "" {
		fmt.Fprintf(page, "\nFamilies: %s.\n\"rna models --family vgg\" lists one, \"rna models 'vit_*'\" lists by name, "+
			"\"rna models vgg16\" describes a model.\n", strings.Join(families(), ", "))
		return page.Flush(out)
	}
	for _, r := range references {
		page.WriteString("\n" + r + "\n")
	}
	return page.Flush(out)
}

func inputOf(a nn.Architecture) string { return fmt.Sprintf("%d×%d×%d", a.Size, a.Size, a.Channels) }

// memoryBatch is the batch for which describeModel states the memory.
const memoryBatch = 16

// describeModel writes the sizes of a model.
func describeModel(out io.Writer, name string) error {
	m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return err
	}
	flops, err := m.FLOPs()
	if err != nil {
		return err
	}
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		return err
	}
	defer dev.Close()
	net, err := network.Blank(dev, name, nn.Config{})
	if err != nil {
		return err
	}
	defer net.Close()
	bytes, err := net.BatchBytes(memoryBatch)
	if err != nil {
		return err
	}
	bytes += 3 * 4 * int64(m.NumParams()) // weights, gradients, momentum
	a := m.Arch
	rows := [][]string{
		{"model", a.Name},
		{"family", a.Family},
		{"", a.Summary},
		{"published", a.Reference},
		{"parameters", text.Thousands(m.NumParams())},
		{"GFLOP", text.Digits(float64(flops)/1e9) + " an image forward, a multiplication and an addition being two; three times as " +
			"many in training"},
		{"memory", fmt.Sprintf("%s to train %d images at a time by SGD on the CPU", text.Bytes(bytes), memoryBatch)},
		{"input", inputOf(a)},
		{"evaluation", fmt.Sprintf("the central %d×%[1]d pixels of photographs resized %s to %d on the shorter side", a.Size,
			map[string]string{"": "bilinearly", "bicubic": "bicubically"}[a.Interpolation],
			cmp.Or(a.Resize, augment.Margin(a.Size)))},
		{"classes", fmt.Sprint(a.Classes)},
		{"BatchNorm", fmt.Sprintf("ε %g, momentum %g", a.BatchNormEps, a.BatchNormMomentum)},
		{"dropout", fmt.Sprintf("%g; stochastic depth %g", a.Dropout, a.DropPath)},
	}
	if a.Mean != nil {
		rows = slices.Insert(rows, 9, []string{"normalisation", fmt.Sprintf("mean %v, standard deviation %v, of pixels "+
			"from 0 to 1", numbers(a.Mean), numbers(a.Std))})
	}
	if a.SamePadding {
		rows = append(rows, []string{"padding", "TensorFlow's SAME, in convolutions with a stride"})
	}
	if names := recipe.ForNet(a.Name); names != nil {
		rows = append(rows, []string{"recipe", strings.Join(names, ", ")})
	}
	if a.Mean == nil {
		rows = slices.DeleteFunc(rows, func(r []string) bool { return r[0] == "evaluation" })
	}
	if len(m.Stats) == 0 {
		rows = slices.DeleteFunc(rows, func(r []string) bool { return r[0] == "BatchNorm" })
	}
	page := terminal.NewPage(out)
	for _, r := range rows {
		fmt.Fprintf(page, "%-15s%s\n", r[0], r[1])
	}
	return page.Flush(out)
}

// numbers formats numbers with commas.
func numbers(list []float64) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}
