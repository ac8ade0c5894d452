package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data"
	"onlinerna/data/gallery"
	"onlinerna/data/imaging"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/evaluate"
	"onlinerna/train/ranks"
)

type predictFlags struct {
	evalFlags
	top   int
	csv   bool
	shown []gallery.Image // for the sheet
}

// inputGroups returns the options of weights and images of rna predict and rna serve.
func (f *evalFlags) inputGroups() (w, d cli.Group) {
	w = cli.NewGroup("Weights")
	w.StringVar(&f.Weights, "weights", "", "`file` of safetensors or of torch.save, or the folder of a run")
	w.StringVar(&f.Key, "key", "", keyHelp)
	w.StringVar(&f.Model, "model", "", "model (default: that of the file)")
	w.Values("model", modelNames()...)
	w.StringVar(&f.Classes, "classes", "", "`file` with the names of the classes by index, one a line (default: those "+
		"of the weights)")
	d = cli.NewGroup("Images")
	d.IntVar(&f.ImageSize, "image-size", 0, "height and width of the net's input (default: that of the weights, or of "+
		"the model)")
	d.IntVar(&f.ValResize, "val-resize", 0, "shorter side of images before the crop (default: that of the weights, or "+
		"256 for a crop of 224)")
	d.BoolVar(&f.FastDecode, "fast-decode", false, fastDecodeHelp)
	d.StringVar(&f.Interpolation, "interpolation", "", "resampling, as of rna eval")
	d.Values("interpolation", imaging.Interpolations()...)
	d.Floats(&f.Mean, "mean",
		"mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: as above)")
	d.Floats(&f.Std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	return w, d
}

// runOptions adds the options of decoding and the device of rna predict and rna serve.
func (f *evalFlags) runOptions(s cli.Group) {
	s.Cores(&f.Workers, "workers", "goroutines that decode images (default: one a core)")
	s.Bytes(&f.DecodeMemory, "decode-memory", optionHelp("decode-memory"))
	s.StringVar(&f.device, "device", "auto", deviceHelp)
	s.Values("device", deviceValues...)
	s.StringVar(&f.Precision, "precision", "", precisionHelp)
	s.Values("precision", precisionValues...)
	s.Cores(&f.Threads, "threads", "threads that compute (default: one a fast core)")
}

// opener opens the device of rna predict and rna serve.
func (f *evalFlags) opener(log io.Writer) func(_ *ranks.Group, threads int) (device.Device, error) {
	return func(_ *ranks.Group, threads int) (device.Device, error) {
		return openDevice(chosenDevice(f.device, log), deviceOptions{threads: threads, precision: f.Precision, log: log})
	}
}

func newPredict() *cobra.Command {
	f := &predictFlags{}
	cmd := &cobra.Command{
		Use:   "predict [WEIGHTS] IMAGE… [options]",
		Short: "Name the classes of images",
		Long: `Name the most probable classes of images. IMAGE is a file, a folder with its subfolders, or - for one image on
the standard input. WEIGHTS is a file, a folder of Hugging Face's hub, or the folder of a run, which stands for its best
weights; --weights names them too.

Weights of rna record the model, the classes and the normalisation. For others name the model; 1,000 outputs without
names are those of ImageNet.`,
		Example: `  rna predict runs/fine cat.jpg
  rna predict runs/fine/best.safetensors cat.jpg
  rna predict resnet50.pth photos/ --model resnet50 --top 1 --csv
  rna predict resnet50.pth photos/ --model resnet50 --sheet sheet.png \
    --group-by prediction
  curl -s https://example.org/a.png |
    rna predict resnet50.pth - --model resnet50 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && f.Weights == "" && evaluate.NamesWeights(args[0]) {
				f.Weights, args = args[0], args[1:]
			}
			err := error(nil)
			switch {
			case len(args) == 0:
				err = errors.New("no images: name files or folders, or - for the standard input")
			case f.Weights == "":
				err = fmt.Errorf("no weights: name a file, or the folder of a run, before the images; %s is neither", args[0])
			case f.top < 1:
				err = fmt.Errorf("--top %d: must be at least 1", f.top)
			case f.json.Print && f.csv:
				err = errors.New("--json and --csv exclude each other")
			default:
				err = f.Sheet.Check("sheet-count", gallery.ByPrediction)
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			err = f.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				err = cli.Interrupted(cmd.Context(), err)
			}
			return err
		},
	}
	w, d := f.inputGroups()
	r := cli.NewGroup("Output")
	r.IntVar(&f.top, "top", 5, "classes of each image")
	f.json.Add(r)
	r.BoolVar(&f.csv, "csv", false, "print CSV: path, rank, class, name, probability, and of several classes threshold, "+
		"shown; or path and numbers")
	r.StringVar(&f.Sheet.Path, "sheet", "", "draw the images, with the most probable classes in captions, on a sheet: "+
		"`file`, .png or .jpg")
	addSheet(r, &f.Sheet, "sheet-count", 100, gallery.ByPrediction)
	s := cli.NewGroup("Run")
	s.IntVar(&f.Batch, "batch", 16, "images a forward pass")
	f.runOptions(s)
	cli.AddGroups(cmd, w, d, r, s)
	return cmd
}

func (f *predictFlags) run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) (err error) {
	f.Open = f.opener(log)
	var set data.Dataset
	p, err := f.OpenPredictor(log, func(channels int) (_ data.Dataset, err error) {
		set, err = f.images(args, in, channels)
		return set, err
	})
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, p.Close()) }()
	list, bad, err := p.Predict(ctx, set, f.top, data.LoaderOptions{Batch: min(f.Batch, set.Len()), Workers: f.Workers,
		FastDecode: f.FastDecode, Budget: data.NewBudget(f.DecodeMemory, 1)}, log, func(i int, x evaluate.Prediction) {
		if f.Sheet.Path != "" && len(f.shown) < f.Sheet.Count {
			f.shown = append(f.shown, gallery.Image{Index: i, Label: -1, Guesses: x.Guesses[:min(2, len(x.Guesses))],
				Loss: math.NaN()})
		}
	})
	if err == nil && f.Sheet.Path != "" {
		err = f.draw(ctx, set, p.Name, len(list), log)
	}
	if err == nil {
		err = f.json.Write(out, list, func(w io.Writer) error { return f.print(w, list) })
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %s could not be read", bad, text.Count(set.Len(), "image"))
	}
	return err
}

// draw draws the images of the sheet, out of all predicted ones.
func (f *predictFlags) draw(ctx context.Context, set data.Dataset, name func(class int) gallery.Guess, of int,
	log io.Writer) error {
	title := filepath.Base(f.Weights)
	if len(f.shown) < of {
		title = fmt.Sprintf("%s: the first %d of %d images", title, len(f.shown), of)
	}
	g := gallery.Gallery{Options: &f.Sheet, Title: title, Set: set, Name: name, Budget: data.NewBudget(f.DecodeMemory, 1)}
	if err := g.Draw(ctx, log, f.shown); err != nil {
		return err
	}
	_, err := fmt.Fprintf(log, "%s: %d of %s\n", f.Sheet.Path, len(f.shown), text.Count(of, "image"))
	return err
}

// images returns those named on the command line.
func (f *predictFlags) images(args []string, in io.Reader, channels int) (*data.Unlabelled, error) {
	set := data.NewUnlabelled(channels)
	for _, path := range args {
		if path != "-" {
			if err := set.AddFile(path); err != nil {
				return nil, err
			}
			continue
		}
		const most = 256 << 20
		b, err := io.ReadAll(io.LimitReader(in, most+1))
		if err == nil && len(b) > most {
			err = fmt.Errorf("more than %d bytes: an image file has at most as many", most)
		}
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		if len(b) == 0 {
			return nil, errors.New("standard input: there is no image")
		}
		set.AddEncoded("-", b)
	}
	return set, nil
}

func (f *predictFlags) print(out io.Writer, list []evaluate.Prediction) error {
	if f.csv {
		w := csv.NewWriter(out)
		if len(list) > 0 && list[0].Numbers != nil {
			return f.numbersCSV(w, list)
		}
		head := []string{"path", "rank", "class", "name", "probability"}
		several := len(list) > 0 && len(list[0].Guesses) > 0 && list[0].Guesses[0].Shown != nil
		if several {
			head = append(head, "threshold", "shown")
		}
		w.Write(head)
		for _, x := range list {
			for i, g := range x.Guesses {
				row := []string{text.Cell(x.Path), strconv.Itoa(i + 1), strconv.Itoa(g.Class), text.Cell(g.Name),
					strconv.FormatFloat(g.Probability, 'g', 6, 64)}
				if several {
					row = append(row, strconv.FormatFloat(g.Threshold, 'g', 6, 64), strconv.FormatBool(*g.Shown))
				}
				w.Write(row)
			}
		}
		w.Flush()
		return w.Error()
	}
	for _, x := range list {
		fmt.Fprintln(out, text.Printable(x.Path))
		for _, n := range x.Numbers {
			fmt.Fprintf(out, "  %-12.6g  %s\n", n.Value, text.Printable(n.Name))
		}
		if len(x.Guesses) > 0 && x.Guesses[0].Shown != nil && !*x.Guesses[0].Shown {
			fmt.Fprintln(out, "  no class; the most probable:")
		}
		for _, g := range x.Guesses {
			wnid := ""
			if g.WNID != "" {
				wnid = "  " + text.Printable(g.WNID)
			}
			if g.Shown != nil && !*g.Shown {
				wnid += fmt.Sprintf("  (below its threshold, %.2f %%)", 100*g.Threshold)
			}
			fmt.Fprintf(out, "  %6.2f %%  %s%s\n", 100*g.Probability, text.Printable(g.Name), wnid)
		}
	}
	return nil
}

// numbersCSV writes a row for each image, with its numbers.
func (f *predictFlags) numbersCSV(w *csv.Writer, list []evaluate.Prediction) error {
	head := []string{"path"}
	for _, n := range list[0].Numbers {
		head = append(head, text.Cell(n.Name))
	}
	w.Write(head)
	for _, x := range list {
		row := []string{text.Cell(x.Path)}
		for _, n := range x.Numbers {
			row = append(row, strconv.FormatFloat(n.Value, 'g', 9, 64))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}
