package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"onlinerna/data"
	"onlinerna/data/audit"
	"onlinerna/internal/cli"
)

type checkFlags struct {
	audit.Options
	val      string
	json     cli.JSON
	decoding int64
	quiet    bool
}

func newDataCheck() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check PLACE [options]",
		Short: "Decode every image and list what is wrong",
		Long: `Decode every image of a place that --data takes. Listed are images that cannot be read, whose content is another than
their name says (a PNG called .JPEG) or of CMYK inks, tiny ones, and files that are there twice: with different classes,
or for training and validation both. Images that cannot be read make the exit status 1.`,
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
	o.StringVar(&f.val, "val-data", "", "`place` of the validation images, where it is not beside the others")
	f.json.Add(o)
	o.Cores(&f.Workers, "workers", "goroutines (default: one a core)")
	o.Bytes(&f.decoding, "decode-memory", optionHelp("decode-memory"))
	o.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	cli.AddGroups(cmd, o)
	return cmd
}

func (f *checkFlags) run(ctx context.Context, place string, stdout, log io.Writer) error {
	log = f.json.Log(stdout, log)
	train, val, closeSets, err := openData(place, f.val, 0, log)
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
