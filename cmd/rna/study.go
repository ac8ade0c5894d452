package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/canvas"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
	"onlinerna/train/report"
)

func newStudy() *cobra.Command {
	f := &trainFlags{}
	cmd := &cobra.Command{
		Use:   "study [options]",
		Short: "Compare training, offline and online RNA: the paper's figure",
		Long: `Train a net twice from one seed, first with RNA beside training, then with its points put back, and overlay the
validation errors of standard training, offline and online RNA: the paper's figure on ImageNet, for any data.

Offline RNA does not change training, so two runs give three curves. The table also shows how far RNA's coefficients are
from the average, and how far they would be if the residuals were noise. The options are those of rna train; the folder
holds both runs and a page about them.`,
		Example: `  rna study
  rna study --data cifar10 --model resnet20 --epochs 30
  rna study --data imagenet --model resnet50`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range notOfStudies {
				if cmd.Flags().Changed(name) {
					return cli.Usage(cmd, fmt.Errorf("--%s does not go with a study: it runs offline and online from the start", name))
				}
			}
			return f.onRanks(cmd, func(g *ranks.Group) error { return runStudy(cmd, f, g) })
		},
	}
	f.addTo(cmd)
	for _, name := range notOfStudies {
		cmd.Flags().Lookup(name).Hidden = true
	}
	return cmd
}

// notOfStudies are options of rna train that a study does not take.
var notOfStudies = []string{"rna", "resume", "resume-or-start", "data-changed"}

func runStudy(cmd *cobra.Command, f *trainFlags, g *ranks.Group) (err error) {
	dev, err := f.open(cmd, g)
	dev, err = launch.Joined(g, dev, err, f.CommPrecision)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	if f.Out == "" {
		f.Out = filepath.Join("runs", time.Now().Format("20060102-150405")+"-study")
	}
	if err := g.Share(&f.Out); err != nil {
		return err
	}
	out, log := cli.SteadyOutputs(cmd)
	folder, told := f.Out, log
	if !g.First() {
		out, told = io.Discard, io.Discard
	}
	defer f.deadline(cmd.Context(), "A study starts anew", told)()
	s := report.Study{}
	var residuals string
	for _, mode := range []average.Mode{average.Offline, average.Online} {
		f.RNA.Mode, f.Out = mode, filepath.Join(folder, string(mode))
		run, err := f.study(cmd, dev, g, out, log)
		if err != nil {
			return err
		}
		if mode == average.Offline {
			s.Config, s.Offline, residuals = run.Resolved.Spec, run.History, report.Spectrum(run)
		} else {
			s.Online = run.History
		}
		if err := run.Close(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if !g.First() {
		return nil
	}
	if err := s.Table(out); err != nil {
		return err
	}
	fmt.Fprint(out, residuals)
	plot := filepath.Join(folder, "study.svg")
	if err := canvas.Draw(plot, s.Plot); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, plot); err != nil || f.noReport {
		return err
	}
	page := pageBuilder{log: log, images: true,
		open: func(*ranks.Group, int) (device.Device, error) { return lent{dev}, nil }}
	return writePage(cmd.Context(), folder, &page, 2, out)
}

// study returns one of the runs. It is not closed.
func (f *trainFlags) study(cmd *cobra.Command, dev device.Device, g *ranks.Group, out, log io.Writer) (*train.Run,
	error) {
	progress := report.NewProgress(out, log, f.quiet || !g.First())
	progress.Verbose = f.verbose
	run, err := f.prepare(dev, g, progress)
	if err != nil {
		return nil, err
	}
	run.Log = progress.Log
	f.observe(run, progress, out)
	report.Announce(out, run, dev.Name())
	err = run.Train(cmd.Context())
	progress.Done()
	if err == nil {
		return run, nil
	}
	if errors.Is(err, train.ErrInterrupted) {
		fmt.Fprintf(out, "%v; a study starts anew\n", err)
		err = cli.ErrStopped
	}
	return nil, errors.Join(err, run.Close())
}
