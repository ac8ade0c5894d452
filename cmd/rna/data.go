package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/data"
	"onlinerna/internal/cli"
	"onlinerna/internal/text"
)

// valSplitHelp is the help of --val-split of commands that do not train.
const valSplitHelp = "validation images are this share of each class, as 0.2 or 20%, where the place has none"

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

// openData opens the sets of a place and prints what they have to say. Folders of class folders are a training set without
// validation images, where val and split do not say which these are.
func openData(path, val string, split float64, out io.Writer) (train, eval data.Dataset, close func(), err error) {
	train, eval, err = data.Open(path, data.Options{Val: val, ValSplit: split, NoVal: true})
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
		fmt.Fprintf(out, "%s: %d images of %d classes\n", s.name, s.set.Len(), len(s.set.Classes()))
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
