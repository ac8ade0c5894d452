package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data"
	"onlinerna/data/audit"
	"onlinerna/data/gallery"
	"onlinerna/internal/text"
)

// valSplitHelp is the help of --val-split for commands that do not train.
const valSplitHelp = "share of each class to validate on, as 0.2 or 20%, if the place has no validation images"

func newData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Pack, check and show sets of images",
		Args:  cli.UnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDataPack(), newDataCheck(), newDataShow())
	return cmd
}

// openData opens the sets of a place and prints their notes. Class folders are a training set without validation
// images, unless val or split provides these.
func openData(path, val string, split float64, task data.Task, out io.Writer) (train, eval data.Dataset, close func(), err error) {
	train, eval, err = data.Open(path, data.Options{Val: val, ValSplit: split, NoVal: true, Task: task})
	if err != nil {
		return nil, nil, nil, err
	}
	for _, s := range []struct {
		name string
		set  data.Dataset
	}{{"train", train}, {"val", eval}} {
		if s.set == nil {
			continue
		}
		fmt.Fprintf(out, "%s: %d images of %s\n", s.name, s.set.Len(), labelsOf(s.set))
		for _, note := range data.Notes(s.set) {
			fmt.Fprintf(out, "%s: %s\n", s.name, text.Printable(note))
		}
	}
	return train, eval, func() {
		for _, set := range []data.Dataset{train, eval} {
			if c, ok := set.(io.Closer); ok {
				c.Close()
			}
		}
	}, nil
}

// labelsOf describes the labels of a set.
func labelsOf(set data.Dataset) string {
	n := len(set.Classes())
	switch data.TaskOf(set) {
	case data.MultiLabel:
		most, sum, row := 0, 0, make([]float64, n)
		for i := range set.Len() {
			count := 0
			data.Targets(set, i, row)
			for _, x := range row {
				count += int(x)
			}
			most, sum = max(most, count), sum+count
		}
		return fmt.Sprintf("%d classes, multi-label: %.2f an image, %d at most", n, float64(sum)/float64(set.Len()), most)
	case data.Regression:
		var list []string
		row := make([]float64, n)
		for k, name := range set.Classes() {
			lo, hi := math.Inf(1), math.Inf(-1)
			for i := range set.Len() {
				data.Targets(set, i, row)
				lo, hi = min(lo, row[k]), max(hi, row[k])
			}
			list = append(list, fmt.Sprintf("%s from %.5g to %.5g", text.Printable(name), lo, hi))
		}
		return text.Count(n, "number") + ": " + strings.Join(list, ", ")
	}
	return fmt.Sprintf("%d classes", n)
}

// addTask adds the option of the task.
func addTask(g cli.Group, task *string) {
	g.StringVar(task, "task", "", "task of the images, as of rna train (default: by the data)")
	g.Values("task", data.Tasks()...)
}

// addSheet adds the options of a sheet except the path. by lists the groupings of images.
func addSheet(g cli.Group, o *gallery.Options, count string, most int, by ...string) {
	g.IntVar(&o.Count, count, most, "`images` on the sheet")
	by = append([]string{gallery.ByNothing}, by...)
	g.StringVar(&o.By, "group-by", gallery.ByNothing, "group the images of the sheet by: "+strings.Join(by, ", "))
	g.Values("group-by", by...)
	g.StringVar(&o.Font, "font", "", "`file` of a TrueType or OpenType font for captions, for characters that "+
		"Liberation Sans lacks")
}

// lines prints a line of progress now and then.
type lines struct {
	out   io.Writer
	quiet bool
	start time.Time
	next  time.Time
}

func newLines(out io.Writer, quiet bool) *lines {
	now := time.Now()
	return &lines{out: out, quiet: quiet, start: now, next: now.Add(10 * time.Second)}
}

func (l *lines) show(what string, done, total int) {
	now := time.Now()
	if l.quiet || now.Before(l.next) {
		return
	}
	l.next = now.Add(10 * time.Second)
	fmt.Fprintf(l.out, "%s %d/%d, %.0f s\n", what, done, total, now.Sub(l.start).Seconds())
}

type checkFlags struct {
	audit.Options
	val      string
	task     string
	json     cli.JSON
	decoding int64
	quiet    bool
}

func newDataCheck() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check PLACE [options]",
		Short: "Decode every image and list defects",
		Long: `Decode every image of a place for --data. The report lists unreadable images, images in another format than
their name says (a PNG named .JPEG) or in CMYK, tiny images, and files that occur twice, with different classes or in
both the training and the validation set. Unreadable images make the exit status 1.`,
		Example: `  rna data check imagenet --json-file report.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(cmd, fmt.Errorf("%d arguments: want the place of the images", len(args)))
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Options")
	o.IntVar(&f.Tiny, "tiny", 32, "images with a shorter side below this many `pixels` are listed")
	o.StringVar(&f.val, "val-data", "", "`place` of the validation images, if not beside the training images")
	addTask(o, &f.task)
	f.json.Add(o)
	o.Cores(&f.Workers, "workers", "goroutines (default: one a core)")
	o.Bytes(&f.decoding, "decode-memory", optionHelp("decode-memory"))
	o.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	cli.AddGroups(cmd, o)
	return cmd
}

func (f *checkFlags) run(ctx context.Context, place string, stdout, log io.Writer) error {
	log = f.json.Log(stdout, log)
	train, val, closeSets, err := openData(place, f.val, 0, data.Task(f.task), log)
	if err != nil {
		return err
	}
	defer closeSets()
	progress := newLines(log, f.quiet)
	f.Budget = data.NewBudget(f.decoding, 1)
	f.Progress = func(done, total int) { progress.show("checked", done, total) }
	r, err := audit.Run(ctx, train, val, f.Options)
	if err != nil && ctx.Err() != nil {
		return cli.ErrStopped
	}
	if err != nil {
		return err
	}
	if err := f.json.Write(stdout, r, r.WriteText); err != nil {
		return err
	}
	if n := len(r.Unreadable); n > 0 {
		return fmt.Errorf("%d of %d images cannot be read", n, r.Images)
	}
	return nil
}
