// Package audit reads every image of a set and reports its faults.
package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/text"
)

// Options sets the limits of an audit.
type Options struct {
	Tiny    int // images whose shorter side is below this are listed
	Workers int // 0: one a CPU
	// memory for decoding: an image too large for it counts as unreadable; nil is data.NewBudget(0, 1)
	Budget   *data.Budget
	Progress func(done, total int) // if not nil, called now and then
}

// Report lists the findings, in the order of the sets.
type Report struct {
	Images     int            `json:"images"`
	Formats    map[string]int `json:"formats"` // by the content; "pixels" for sets that store those
	Unreadable []Finding      `json:"unreadable"`
	Mislabeled []Finding      `json:"mislabeled"` // a wrong file extension or an unusual colour space
	Tiny       []Finding      `json:"tiny"`
	// Duplicates are files with the same bytes, each group in the order of the sets.
	Duplicates [][]string `json:"duplicates"`
	// Conflicts are the Duplicates whose classes differ; Leaks are the Duplicates that are in both sets.
	Conflicts int      `json:"conflicts"`
	Leaks     int      `json:"leaks"`
	Notes     []string `json:"notes"`
}

// Finding is an image and its fault.
type Finding struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// found is the result for one image.
type found struct {
	format, unreadable, mislabeled, tiny string
	hash                                 [16]byte
}

// Run reads all images of the sets: those for training, and those to validate on, which may be nil.
func Run(ctx context.Context, train, val data.Dataset, opt Options) (*Report, error) {
	if opt.Budget == nil {
		opt.Budget = data.NewBudget(0, 1)
	}
	r := &Report{Formats: map[string]int{}}
	type place struct {
		set  data.Dataset
		name string
	}
	var sets []place
	for _, s := range []place{{train, "train"}, {val, "val"}} {
		if s.set != nil {
			sets = append(sets, s)
			r.Images += s.set.Len()
		}
	}
	type image struct{ set, i int }
	same := map[[16]byte][]image{}
	var done atomic.Int64
	for k, s := range sets {
		for _, note := range data.Notes(s.set) {
			r.Notes = append(r.Notes, s.name+": "+note)
		}
		list := make([]found, s.set.Len())
		if err := each(ctx, len(list), opt, func(w *data.Scratch, i int) {
			list[i] = look(s.set, i, opt.Tiny, w)
			if n := int(done.Add(1)); opt.Progress != nil && (n%256 == 0 || n == r.Images) {
				opt.Progress(n, r.Images)
			}
		}); err != nil {
			return nil, err
		}
		for i, f := range list {
			r.Formats[f.format]++
			for _, c := range []struct {
				what string
				to   *[]Finding
			}{{f.unreadable, &r.Unreadable}, {f.mislabeled, &r.Mislabeled}, {f.tiny, &r.Tiny}} {
				if c.what != "" {
					*c.to = append(*c.to, Finding{s.set.Name(i), c.what})
				}
			}
			if f.hash != [16]byte{} {
				same[f.hash] = append(same[f.hash], image{k, i})
			}
		}
	}
	var groups [][]image
	for _, group := range same {
		if len(group) > 1 {
			groups = append(groups, group)
		}
	}
	slices.SortFunc(groups, func(a, b []image) int {
		if a[0].set != b[0].set {
			return a[0].set - b[0].set
		}
		return a[0].i - b[0].i
	})
	for _, group := range groups {
		var names []string
		conflict, leak := false, false
		class := func(m image) string { return data.Describe(sets[m.set].set, m.i) }
		for _, m := range group {
			names = append(names, sets[m.set].set.Name(m.i))
			conflict = conflict || class(m) != class(group[0])
			leak = leak || m.set != group[0].set
		}
		r.Duplicates = append(r.Duplicates, names)
		if conflict {
			r.Conflicts++
		}
		if leak {
			r.Leaks++
		}
	}
	return r, nil
}

// each runs work for 0, …, n−1 on several goroutines.
func each(ctx context.Context, n int, opt Options, work func(w *data.Scratch, i int)) error {
	workers := cmp.Or(opt.Workers, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	var next atomic.Int64
	for range workers {
		group.Go(func() {
			w := data.NewScratch(opt.Budget, workers)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				work(w, i)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// look reads an image.
func look(ds data.Dataset, i, tiny int, w *data.Scratch) (f found) {
	defer w.Release()
	name := ds.Name(i)
	b, encoded, err := data.Encoded(ds, i, w)
	var m *imaging.Image
	switch {
	case err != nil:
	case !encoded:
		f.format = "pixels"
		if m, err = ds.Read(i, nil, w); err == nil {
			b = m.Pix
		}
	default:
		extension := imaging.Extension(b)
		if f.format = strings.TrimPrefix(extension, "."); f.format == "" {
			f.format = "unknown"
		}
		f.mislabeled = mislabeled(name, extension, b)
		m, err = w.Decode(b, ds.Channels())
	}
	if err != nil {
		if f.format == "" {
			f.format = "unknown"
		}
		f.unreadable = err.Error()
		return f
	}
	if shorter := min(m.Width, m.Height); shorter < tiny {
		f.tiny = fmt.Sprintf("%dx%d pixels", m.Width, m.Height)
	}
	sum := sha256.Sum256(b)
	copy(f.hash[:], sum[:])
	return f
}

// mislabeled describes how the content contradicts the name.
func mislabeled(name, extension string, b []byte) string {
	is := map[string]string{".jpeg": ".jpg", ".tif": ".tiff"}
	own := strings.ToLower(path.Ext(name))
	if to, ok := is[own]; ok {
		own = to
	}
	known := slices.Contains([]string{".jpg", ".png", ".webp", ".bmp", ".gif", ".tiff"}, own)
	switch {
	case known && extension != "" && own != extension:
		return "is a " + strings.ToUpper(extension[1:]) + " by its content"
	case imaging.IsCMYK(b):
		return "is a JPEG of CMYK inks"
	}
	return ""
}

// WriteText writes the report in lines, with ten examples of each finding.
func (r *Report) WriteText(w io.Writer) error {
	var formats []string
	for _, name := range slices.Sorted(maps.Keys(r.Formats)) {
		formats = append(formats, fmt.Sprintf("%d %s", r.Formats[name], name))
	}
	fmt.Fprintf(w, "%d images: %s\n", r.Images, strings.Join(formats, ", "))
	for _, c := range []struct {
		title string
		list  []Finding
	}{{"cannot be read", r.Unreadable}, {"other than they seem", r.Mislabeled}, {"tiny", r.Tiny}} {
		fmt.Fprintf(w, "%s: %d\n", c.title, len(c.list))
		for _, one := range c.list[:min(len(c.list), 10)] {
			fmt.Fprintf(w, "  %s: %s\n", text.Printable(one.Name), text.Printable(one.What))
		}
	}
	_, err := fmt.Fprintf(w, "there more than once: %d files, %d of them with different classes, %d for training and "+
		"validation both\n",
		len(r.Duplicates), r.Conflicts, r.Leaks)
	for _, names := range r.Duplicates[:min(len(r.Duplicates), 10)] {
		_, err = fmt.Fprintf(w, "  %s\n", text.Printable(strings.Join(names[:min(len(names), 4)], " = ")))
	}
	return err
}
