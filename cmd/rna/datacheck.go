package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/data"
	"onlinerna/data/audit"
)

type checkFlags struct {
	audit.Options
	val, json string
	decoding  int64
	quiet     bool
}

func newDataCheck() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check PLACE [options]",
		Short: "Decode every image and list what is wrong",
		Long: `Decode every image of a place that --data takes. Listed are images that cannot be read, whose content is another than
their name says (a PNG called .JPEG) or of CMYK inks, tiny ones, and files that are there twice: with different classes,
or for training and validation both. Images that cannot be read make the exit status 1.`,
		Example: `  rna data check imagenet --json report.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{cmd.CommandPath(), fmt.Errorf("%d arguments: want the place of the images", len(args))}
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	o := newGroup("Options")
	o.IntVar(&f.Tiny, "tiny", 32, "images with a shorter side below this many `pixels` are listed")
	o.StringVar(&f.val, "val-data", "", "`place` of the validation images, where it is not beside the others")
	o.StringVar(&f.json, "json", "", "`file` for the whole report")
	o.cores(&f.Workers, "workers", "goroutines (default: one a core)")
	o.decodeMemory(&f.decoding)
	o.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	o.BoolP("help", "h", false, "this help")
	addGroups(cmd, o)
	return cmd
}

func (f *checkFlags) run(ctx context.Context, place string, stdout io.Writer) error {
	train, val, closeSets, err := openData(place, f.val, 0, stdout)
	if err != nil {
		return err
	}
	defer closeSets()
	progress := newLines(stdout, f.quiet)
	f.Budget = data.NewBudget(f.decoding, 1)
	f.Progress = func(done, total int) { progress.show("checked", done, total) }
	r, err := audit.Run(ctx, train, val, f.Options)
	if err != nil && ctx.Err() != nil {
		return errStopped
	}
	if err != nil {
		return err
	}
	if err := writeFile(f.json, indented(r)); err != nil {
		return err
	}
	var formats []string
	for _, name := range slices.Sorted(maps.Keys(r.Formats)) {
		formats = append(formats, fmt.Sprintf("%d %s", r.Formats[name], name))
	}
	fmt.Fprintf(stdout, "%d images: %s\n", r.Images, strings.Join(formats, ", "))
	for _, c := range []struct {
		title string
		list  []audit.Finding
	}{{"cannot be read", r.Unreadable}, {"other than they seem", r.Mislabeled}, {"tiny", r.Tiny}} {
		fmt.Fprintf(stdout, "%s: %d\n", c.title, len(c.list))
		for _, one := range c.list[:min(len(c.list), 10)] {
			fmt.Fprintf(stdout, "  %s: %s\n", one.Name, one.What)
		}
	}
	fmt.Fprintf(stdout, "there more than once: %d files, %d of them with different classes, %d for training and validation both\n",
		len(r.Duplicates), r.Conflicts, r.Leaks)
	for _, names := range r.Duplicates[:min(len(r.Duplicates), 10)] {
		fmt.Fprintf(stdout, "  %s\n", strings.Join(names[:min(len(names), 4)], " = "))
	}
	if n := len(r.Unreadable); n > 0 {
		return fmt.Errorf("%d of %d images cannot be read", n, r.Images)
	}
	return nil
}
