package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data"
	"onlinerna/data/pack"
	"onlinerna/internal/text"
)

type packFlags struct {
	pack.Options
	raw      int
	val      string
	split    float64
	decoding int64
	quiet    bool
}

func newDataPack() *cobra.Command {
	f := &packFlags{}
	out := ""
	cmd := &cobra.Command{
		Use:   "pack IN OUT [options]",
		Short: "Make a set that trains faster: small images in large files",
		Long: `Make a set of images that trains faster. IN is any place for --data, OUT is a new folder: shards of about 256
MB with an index, classes.txt, SHA256SUMS, and pack.json, which lists the images left out and why.

Images whose shorter side exceeds --size are resized to it and written as JPEG. Smaller ones are copied, unless --recode
codes them again, which saves room and time at some loss. --raw stores pixels at the given shorter side: they take twice
the disk space or more, and need no decoding.

The same command resumes after an interruption. OUT appears when it is complete. Its bytes do not depend on --workers.`,
		Example: `  rna data pack imagenet imagenet-512 --size 512 --quality 90
  rna data pack imagenet imagenet-raw --raw 256`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out != "" {
				args = append(args, out)
			}
			if len(args) != 2 {
				return cli.Usage(cmd, fmt.Errorf("%d arguments: want the images and the new folder", len(args)))
			}
			if cmd.Flags().Changed("raw") {
				for _, name := range []string{"size", "quality", "recode"} {
					if cmd.Flags().Changed(name) {
						return cli.Usage(cmd, fmt.Errorf("--%s does nothing with --raw, which gives the size of pixels", name))
					}
				}
				f.Raw, f.Size = true, f.raw
			}
			return f.run(cmd.Context(), args[0], args[1], cmd.OutOrStdout())
		},
	}
	w := cli.NewGroup("Images")
	w.StringVarP(&out, "out", "o", "", "new `folder`, in place of OUT")
	w.IntVar(&f.Size, "size", 512, "`pixels` of the shorter side; larger images are resized")
	w.IntVar(&f.Quality, "quality", 90, "of JPEG, 1 to 100")
	w.BoolVar(&f.Recode, "recode", false, "also code smaller images again")
	w.IntVar(&f.raw, "raw", 0, "store `pixels`, this many on the shorter side")
	w.StringVar(&f.val, "val-data", "", "`place` of the validation images, if not beside the training images")
	w.Share(&f.split, "val-split", valSplitHelp)
	r := cli.NewGroup("Run")
	r.Int64Var(&f.ShardBytes, "shard-bytes", pack.DefaultShardBytes, "size of a shard in `bytes`")
	r.Cores(&f.Workers, "workers", "goroutines (default: one a core)")
	r.Bytes(&f.decoding, "decode-memory", optionHelp("decode-memory"))
	r.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	cli.AddGroups(cmd, w, r)
	return cmd
}

func (f *packFlags) run(ctx context.Context, in, out string, stdout io.Writer) error {
	train, val, closeSets, err := openData(in, f.val, f.split, data.Classification, stdout)
	if err != nil {
		return err
	}
	defer closeSets()
	f.Budget = data.NewBudget(f.decoding, 1)
	f.Progress = newLines(stdout, f.quiet).show
	report, err := pack.Run(ctx, train, val, out, f.Options)
	if err != nil && ctx.Err() != nil {
		return cli.Stopped("interrupted: the same command goes on")
	}
	if err != nil {
		return err
	}
	for _, s := range report.Splits {
		bytes := int64(0)
		for _, shard := range s.Shards {
			bytes += shard.Bytes
		}
		fmt.Fprintf(stdout, "%s: %d of %d images (%d copied as they are) in %s of %.1f MB\n",
			s.Name, s.Kept(), s.Images, s.Copied, text.Count(len(s.Shards), "file"), float64(bytes)/1e6)
		for i, d := range s.Dropped {
			if i == 10 {
				fmt.Fprintf(stdout, "  … and %d more, see %s/pack.json\n", len(s.Dropped)-i, out)
				break
			}
			fmt.Fprintf(stdout, "  left out: %s: %s\n", text.Printable(d.Name), text.Printable(d.Why))
		}
	}
	return nil
}
