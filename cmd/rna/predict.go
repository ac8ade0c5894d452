package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/cli"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/network"
)

type predictFlags struct {
	evalFlags
	top   int
	csv   bool
	shown []sheetImage // for the sheet
}

func newPredict() *cobra.Command {
	f := &predictFlags{}
	cmd := &cobra.Command{
		Use:   "predict [RUN] IMAGE… [--weights FILE] [options]",
		Short: "Say what images show",
		Long: `Say what images show, by weights that were trained: the most probable classes of each. IMAGE is a file, a folder with
the folders in it, or - for one image on the standard input. RUN is the folder of a run, in place of --weights: its best weights.

Weights that rna wrote carry the model, the classes and the normalisation with them. For others name the model; 1,000
outputs without names are ImageNet's.`,
		Example: `  rna predict runs/fine cat.jpg
  rna predict cat.jpg --weights runs/fine/best.safetensors
  rna predict photos/ --weights resnet50.pth --model resnet50 --top 1 --csv
  rna predict photos/ --weights resnet50.pth --model resnet50 \
    --sheet sheet.png --group-by prediction
  curl -s https://example.org/a.png |
    rna predict - --weights resnet50.pth --model resnet50 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && f.weights == "" && isRun(args[0]) {
				f.weights, args = args[0], args[1:]
			}
			err := error(nil)
			switch {
			case len(args) == 0:
				err = errors.New("no images: name files or folders, or - for the standard input")
			case f.weights == "":
				err = errors.New("--weights is missing: the file to predict by, or the folder of a run")
			case f.top < 1:
				err = fmt.Errorf("--top %d: must be at least 1", f.top)
			case f.json.Print && f.csv:
				err = errors.New("--json and --csv exclude each other")
			default:
				err = f.sheet.check("sheet-count", byPrediction)
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	w := cli.NewGroup("Weights")
	w.StringVar(&f.weights, "weights", "", "`file`: safetensors, or what torch.save wrote; or the folder of a run")
	w.StringVar(&f.key, "key", "", keyHelp)
	w.StringVar(&f.model, "model", "", "model (default: what the file says)")
	w.Values("model", modelNames()...)
	w.StringVar(&f.classesFile, "classes", "", "`file` with the names of the classes by index, one a line (default: what the weights say)")
	d := cli.NewGroup("Images")
	d.IntVar(&f.imageSize, "image-size", 0, "height and width of the net's input (default: what the weights say, or the model's)")
	d.IntVar(&f.valResize, "val-resize", 0, "shorter side to which images are resized before the crop (default: what the weights say, or 256 for a crop of 224)")
	d.BoolVar(&f.fastDecode, "fast-decode", false, fastDecodeHelp)
	d.StringVar(&f.interpolation, "interpolation", "", "how they are resized, as of rna eval")
	d.Values("interpolation", imaging.Interpolations()...)
	d.Floats(&f.mean, "mean", "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: as above)")
	d.Floats(&f.std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	r := cli.NewGroup("Output")
	r.IntVar(&f.top, "top", 5, "classes of each image")
	f.json.Add(r)
	r.BoolVar(&f.csv, "csv", false, "print CSV: path, rank, class, name, probability")
	r.StringVar(&f.sheet.path, "sheet", "", "draw the images, with the most probable classes in captions, on a sheet: `file`, .png or .jpg")
	f.sheet.add(r, "sheet-count", 100, byPrediction)
	s := cli.NewGroup("Run")
	s.IntVar(&f.batch, "batch", 16, "images a forward pass")
	s.Cores(&f.workers, "workers", "goroutines that decode images (default: one a core)")
	s.Bytes(&f.decoding, "decode-memory", optionHelp("decode-memory"))
	s.StringVar(&f.device, "device", "auto", deviceHelp)
	s.Values("device", deviceValues...)
	s.StringVar(&f.precision, "precision", "", precisionHelp)
	s.Values("precision", precisionValues...)
	s.Cores(&f.threads, "threads", "threads that compute (default: one a fast core)")
	cli.AddGroups(cmd, w, d, r, s)
	return cmd
}

// A guess is a class with its probability.
type guess struct {
	Class       int     `json:"class"`
	Name        string  `json:"name"`
	WNID        string  `json:"wnid,omitempty"` // of ImageNet's classes
	Probability float64 `json:"probability"`
}

type predicted struct {
	Path    string  `json:"path"`
	Guesses []guess `json:"classes"`
}

func (f *predictFlags) run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) (err error) {
	file, meta, err := f.openWeights(log)
	if err != nil {
		return err
	}
	defer file.Close()
	m, outputs, channels, err := netOf(file, &meta)
	if err != nil {
		return err
	}
	set, err := f.images(args, in, channels)
	if err != nil {
		return err
	}
	profile, err := data.ProfileOf(set)
	if err != nil || m.Config.Size > photoSize { // the loader says which image cannot be read
		if profile, err = photoProfile(); err != nil {
			return err
		}
	}
	fill(&meta, profile)
	transform, err := profile.Evaluation(data.EvalOptions{Size: meta.ImageSize, Resize: meta.ValResize, Interpolation: meta.Interpolation})
	if err != nil {
		return err
	}
	bad := 0
	loader, err := data.NewLoader(set, transform, data.LoaderOptions{Batch: min(f.batch, set.Len()), Workers: f.workers, MaxBad: data.AllBad, FastDecode: f.fastDecode, Budget: data.NewBudget(f.decoding, 1),
		Log: func(format string, args ...any) { bad++; fmt.Fprintf(log, format+"\n", args...) }})
	if err != nil {
		return err
	}
	options := deviceOptions{threads: f.threads, precision: f.precision, log: log}
	dev, err := openDevice(chosenDevice(f.device, log), options)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	net, err := network.New(dev, meta.Model, meta.Config(outputs, channels), 0)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, net.Close()) }()
	if _, err := net.Load(f.weights, network.LoadOptions{Key: f.key}); err != nil {
		return err
	}
	name := namer(meta.Classes, outputs)
	var list []predicted
	err = net.Probabilities(ctx, loader, func(i int, p []float64) error {
		list = append(list, predicted{set.Name(i), best(p, f.top, name)})
		if f.sheet.path != "" && len(f.shown) < f.sheet.count {
			f.shown = append(f.shown, sheetImage{index: i, label: -1, guesses: best(p, 2, name)})
		}
		return nil
	})
	if err == nil && f.sheet.path != "" {
		err = f.draw(ctx, set, name, len(list), log)
	}
	if err == nil {
		err = f.json.Write(out, list, func(w io.Writer) error { return f.print(w, list) })
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %s could not be read", bad, text.Count(set.Len(), "image"))
	}
	return err
}

// draw draws the images of the sheet, of so many that were predicted.
func (f *predictFlags) draw(ctx context.Context, set data.Dataset, name func(class int) guess, of int, log io.Writer) error {
	title := filepath.Base(f.weights)
	if len(f.shown) < of {
		title = fmt.Sprintf("%s: the first %d of %d images", title, len(f.shown), of)
	}
	g := gallery{sheetFlags: &f.sheet, title: title, set: set, name: name, budget: data.NewBudget(f.decoding, 1)}
	if err := g.draw(ctx, log, f.shown); err != nil {
		return err
	}
	_, err := fmt.Fprintf(log, "%s: %d of %s\n", f.sheet.path, len(f.shown), text.Count(of, "image"))
	return err
}

// images are those that the command line names.
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

// namer names outputs: as the weights say, or as ImageNet's, or by their numbers.
func namer(classes []string, outputs int) func(i int) guess {
	wnids, names := data.ImageNetClasses()
	if classes == nil && outputs == len(wnids) {
		classes = wnids
	}
	return func(i int) guess {
		g := guess{Class: i, Name: strconv.Itoa(i)}
		if i < len(classes) {
			g.Name = classes[i]
		}
		if k, ok := slices.BinarySearch(wnids, g.Name); ok {
			g.WNID, g.Name = g.Name, names[k]
		}
		return g
	}
}

// best are the most probable classes, the first of equals first.
func best(p []float64, top int, name func(i int) guess) []guess {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	var list []guess
	for _, i := range order[:min(top, len(order))] {
		g := name(i)
		g.Probability = p[i]
		list = append(list, g)
	}
	return list
}

func (f *predictFlags) print(out io.Writer, list []predicted) error {
	if f.csv {
		w := csv.NewWriter(out)
		w.Write([]string{"path", "rank", "class", "name", "probability"})
		for _, x := range list {
			for i, g := range x.Guesses {
				w.Write([]string{text.Cell(x.Path), strconv.Itoa(i + 1), strconv.Itoa(g.Class), text.Cell(g.Name), strconv.FormatFloat(g.Probability, 'g', 6, 64)})
			}
		}
		w.Flush()
		return w.Error()
	}
	for _, x := range list {
		fmt.Fprintln(out, text.Printable(x.Path))
		for _, g := range x.Guesses {
			wnid := ""
			if g.WNID != "" {
				wnid = "  " + text.Printable(g.WNID)
			}
			fmt.Fprintf(out, "  %6.2f %%  %s%s\n", 100*g.Probability, text.Printable(g.Name), wnid)
		}
	}
	return nil
}
