package extrapolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"onlinerna/train/statedict"
)

// Window determines the files that make residuals.
type Window struct {
	Order Order
	Y0    string // file before the first; empty: none
	Key   string // the state dict in each file
	Pairs bool   // files are y x y x …

	Weights bool // other contents are an error
	Factors bool // except factors of adapters
}

// Check finds mistakes for a number of files; ordered reports whether the user chose an order.
func (w *Window) Check(files int, ordered bool) error {
	switch {
	case w.Pairs && w.Y0 != "":
		return errors.New("--pairs and --y0 exclude each other")
	case w.Pairs && files%2 != 0:
		return fmt.Errorf("--pairs takes y x y x …: %d files are no pairs", files)
	case w.Pairs && ordered && w.Order != Given:
		return errors.New("--pairs takes the files in the given order")
	}
	return nil
}

// Open opens files in order, and compares them with their checksums unless opt says otherwise. Close closes them.
func (w *Window) Open(ctx context.Context, paths []string, opt Options) (*Series, error) {
	order := w.Order
	if w.Pairs {
		order = Given
		for i := 0; i < len(paths); i += 2 {
			opt.Pairs = append(opt.Pairs, Pair{Y: i, X: i + 1})
		}
	}
	seen := map[string]bool{}
	var files []*Checkpoint
	add := func(path string) (err error) {
		if clean := filepath.Clean(path); seen[clean] {
			err = fmt.Errorf("%s is given twice", path)
		} else {
			seen[clean] = true
			var c *Checkpoint
			if c, err = open(path, w.Key); err == nil {
				files = append(files, c)
				err = twice(files)
			}
			if err == nil && w.Weights && c.Contents != statedict.Weights &&
				!(w.Factors && c.Contents == statedict.Factors) {
				err = fmt.Errorf("%s %s", c.Path, c.What)
				if c.Contents == statedict.Factors {
					err = fmt.Errorf("%w: --adapter delta merges the products of folders, --adapter factors the factors", err)
				}
			}
		}
		return err
	}
	var err error
	for _, path := range paths {
		if err = add(path); err != nil {
			break
		}
	}
	if err == nil {
		err = Sort(files, order)
	}
	if err == nil && w.Y0 != "" {
		if err = add(w.Y0); err == nil {
			files = append(files[len(files)-1:], files[:len(files)-1]...)
		}
	}
	var s *Series
	if err == nil {
		s, err = NewSeries(files, opt)
	}
	if err == nil && !opt.Unverified {
		err = s.verify(ctx)
	}
	if err = opt.Ranks.Together(err); err != nil {
		closeAll(files)
		return nil, err
	}
	return s, nil
}

// twice returns an error if the last file is one of the others, which links can hide.
func twice(files []*Checkpoint) error {
	last := files[len(files)-1]
	for _, c := range files[:len(files)-1] {
		if c.File.Same(last.File) {
			return fmt.Errorf("%s is given twice: %s is the same", last.Path, c.Path)
		}
	}
	return nil
}

// verify compares files with their checksums; ranks do it in turn.
func (s *Series) verify(ctx context.Context) error {
	own := func(i int) bool { return i%s.opt.Ranks.Size() == s.opt.Ranks.Rank() }
	total := int64(0)
	for i, c := range s.files {
		if own(i) {
			total += c.File.Summed()
		}
	}
	if s.opt.Start != nil && total > 0 {
		s.opt.Start("verifying", total)
	}
	for i, c := range s.files {
		if !own(i) {
			continue
		}
		_, err := c.File.VerifyWith(func(bytes int64) error {
			if s.opt.Progress != nil {
				s.opt.Progress(bytes)
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes the files.
func (s *Series) Close() { closeAll(s.files) }

func closeAll(files []*Checkpoint) {
	for _, c := range files {
		c.Close()
	}
}

// Tell writes the names of the files' state dicts. An optimiser's state is an error if weights are required.
func (s *Series) Tell(log io.Writer, weights bool) error {
	if found := s.files[0].Found; found != "" {
		fmt.Fprintln(log, found)
	}
	for _, c := range s.files {
		if c.Contents == statedict.OptimizerState && weights {
			return fmt.Errorf("%s %s: name files of weights", c.Path, c.What)
		}
		if c.What != "" {
			fmt.Fprintf(log, "%s %s\n", c.Path, c.What)
		}
	}
	return nil
}
