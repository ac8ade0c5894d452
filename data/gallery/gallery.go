// Package gallery draws images of a set, with their labels and predictions, on a sheet.
package gallery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/sheet"
	"onlinerna/internal/text"
)

// Options are the choices of a sheet.
type Options struct {
	Path  string // of the file: .png or .jpg
	By    string // one of the By constants
	Font  string // a file of a TrueType or OpenType font for characters that Liberation Sans lacks
	Count int    // images at most
}

// Groups of images on a sheet.
const (
	ByNothing    = "none"
	ByClass      = "class"
	ByPrediction = "prediction"
)

// Check finds mistakes in the options; count is the option for the number of images, by lists the possible groups.
func (o *Options) Check(count string, by ...string) error {
	switch {
	case o.Count < 1 || o.Count > sheet.Most:
		return fmt.Errorf("--%s %d: want 1 to %d images", count, o.Count, sheet.Most)
	case o.By != ByNothing && !slices.Contains(by, o.By):
		return fmt.Errorf("--group-by %s: want %s", o.By, strings.Join(append([]string{ByNothing}, by...), " or "))
	}
	if o.Font == "" {
		return nil
	}
	_, err := sheet.LoadFonts(o.Font)
	return err
}

// Image is an image of a set, with its caption.
type Image struct {
	Index   int            // in the set
	Label   int            // -1 for none
	Guesses []Guess        // empty without a prediction
	Loss    float64        // NaN for none
	Seen    *imaging.Image // as the network sees it, nil if not shown
	Alone   bool           // without the file's own picture

	picture image.Image // of the file, at the size of a tile; nil if unreadable
}

// Gallery draws the images of a set.
type Gallery struct {
	*Options
	Title  string
	Place  string // of the set, which captions leave out
	Set    data.Dataset
	Name   func(class int) Guess
	Budget *data.Budget
}

// Draw writes a sheet of images. It warns of characters that the font lacks.
func (g *Gallery) Draw(ctx context.Context, out io.Writer, list []Image) error {
	img, c, err := g.draw(ctx, list)
	if err != nil {
		return err
	}
	if err := sheet.Write(g.Path, img); err != nil {
		return err
	}
	c.tell(out)
	return nil
}

// Sheet is Draw without a file.
func (g *Gallery) Sheet(ctx context.Context, list []Image) (image.Image, error) {
	img, _, err := g.draw(ctx, list)
	return img, err
}

func (g *Gallery) draw(ctx context.Context, list []Image) (image.Image, *captions, error) {
	if len(list) == 0 {
		return nil, nil, errors.New("no image to draw")
	}
	fonts, err := sheet.LoadFonts(g.Font)
	if err != nil {
		return nil, nil, err
	}
	if err := g.read(ctx, list); err != nil {
		return nil, nil, err
	}
	c := &captions{Gallery: g, fonts: fonts, missing: map[int]string{}}
	img, err := sheet.Draw(fonts, g.Title, c.groups(list))
	return img, c, err
}

// Pictures decodes images at the size of a tile; nil for one that is unreadable.
func (g *Gallery) Pictures(ctx context.Context, list []Image) (pictures []image.Image, err error) {
	if err := g.read(ctx, list); err != nil {
		return nil, err
	}
	for i := range list {
		pictures = append(pictures, list[i].picture)
	}
	return pictures, nil
}

// read decodes the images at their own size, and fits them into tiles.
func (g *Gallery) read(ctx context.Context, list []Image) error {
	each, ctx := errgroup.WithContext(ctx)
	workers := min(runtime.GOMAXPROCS(0), len(list))
	for k := range workers {
		each.Go(func() error {
			scratch := data.NewScratch(g.Budget, workers)
			defer scratch.Release()
			for i := k; i < len(list); i += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				m, err := g.Set.Read(list[i].Index, nil, scratch)
				if err != nil {
					continue // the tile says so
				}
				if list[i].picture, err = fitted(m); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return each.Wait()
}

// fitted is an image at the size of a tile: a small one by a whole factor, so that its pixels show.
func fitted(m *imaging.Image) (image.Image, error) {
	width, height, whole := sheet.FitSize(m.Width, m.Height)
	r := imaging.Resizer{Interpolation: imaging.Bicubic}
	if whole {
		r.Interpolation = imaging.Nearest
	}
	to := &imaging.Image{}
	if err := r.Resize(to, m, m.Bounds(), width, height); err != nil {
		return nil, err
	}
	if to.Channels == 1 {
		return &image.Gray{Pix: to.Pix, Stride: to.Width, Rect: to.Bounds()}, nil
	}
	picture := image.NewRGBA(to.Bounds())
	for i := range to.Width * to.Height {
		copy(picture.Pix[4*i:], to.Pix[3*i:3*i+3])
		picture.Pix[4*i+3] = 0xff
	}
	return picture, nil
}

// captions draws a gallery's captions with fonts, and notes missing glyphs.
type captions struct {
	*Gallery
	fonts   *sheet.Fonts
	missing map[int]string // names of classes for which the font has no glyphs
}

// groups are the tiles of the images, in the order of the list; the largest group comes first.
func (c *captions) groups(list []Image) []sheet.Group {
	var groups []sheet.Group
	at := map[int]int{}
	for i := range list {
		x := &list[i]
		class := -1
		switch {
		case c.By == ByClass:
			class = x.Label
		case c.By == ByPrediction && len(x.Guesses) > 0:
			class = x.Guesses[0].Class
		}
		k, ok := at[class]
		if !ok {
			k = len(groups)
			at[class] = k
			groups = append(groups, sheet.Group{Title: c.heading(class)})
		}
		groups[k].Tiles = append(groups[k].Tiles, c.tile(x))
	}
	for i, g := range groups {
		if g.Title.Before != "" {
			groups[i].Title.After = ": " + text.Count(len(g.Tiles), "image")
		}
	}
	slices.SortStableFunc(groups, func(a, b sheet.Group) int { return cmp.Compare(len(b.Tiles), len(a.Tiles)) })
	return groups
}

func (c *captions) heading(class int) sheet.Line {
	switch {
	case c.By == ByNothing:
		return sheet.Line{}
	case class < 0:
		return sheet.Line{Before: "no " + c.By}
	case c.By == ByClass:
		return sheet.Line{Before: "label ", Name: c.class(class)}
	}
	return sheet.Line{Before: "predicted ", Name: c.class(class)}
}

// class is the name of a class, with its number where the font has no glyphs for it.
func (c *captions) class(class int) string {
	name := c.Name(class).Name
	if c.fonts.Has(name) {
		return name
	}
	c.missing[class] = name
	return fmt.Sprintf("class %d %s", class, name)
}

func (c *captions) tile(x *Image) sheet.Tile {
	t := sheet.Tile{Frame: color.Gray{0xc0}}
	if x.picture != nil && !x.Alone {
		t.Pictures = append(t.Pictures, x.picture)
	}
	if x.Seen != nil {
		if m, err := fitted(x.Seen); err == nil {
			t.Pictures = append(t.Pictures, m)
		}
	}
	add := func(before, name, after string) {
		t.Caption = append(t.Caption, sheet.Line{Before: before, Name: name, After: after})
	}
	switch {
	case x.Label < 0:
		for _, g := range x.Guesses[:min(2, len(x.Guesses))] {
			add("", c.class(g.Class), " "+share(g.Probability))
		}
		if data.TaskOf(c.Set) != data.Classification {
			add("", data.Describe(c.Set, x.Index), "")
		}
		if !math.IsNaN(x.Loss) && x.Loss > 0 {
			add("loss "+lossOf(x.Loss), "", "")
		}
	case math.IsNaN(x.Loss):
		add("", c.class(x.Label), "")
	case len(x.Guesses) == 0:
		t.Frame = sheet.Wrong
		add("label: ", c.class(x.Label), "")
		add("predicted: no number", "", "")
	default:
		t.Frame = sheet.Wrong
		if x.Guesses[0].Class == x.Label {
			t.Frame = sheet.Right
		}
		add("label: ", c.class(x.Label), "")
		add("predicted: ", c.class(x.Guesses[0].Class), "")
		add(fmt.Sprintf("%s, loss %s", share(x.Guesses[0].Probability), lossOf(x.Loss)), "", "")
	}
	if x.picture == nil {
		add("unreadable", "", "")
	}
	path := filepath.ToSlash(strings.TrimPrefix(c.Set.Name(x.Index), filepath.Clean(c.Place)+string(filepath.Separator)))
	if cut := strings.LastIndexByte(path, '/') + 1; cut > 0 && c.fonts.Width(path) > sheet.Side {
		add("", path[:cut], "")
		path = path[cut:]
	}
	add("", path, "")
	return t
}

// tell warns of names that could not be drawn.
func (c *captions) tell(out io.Writer) {
	if len(c.missing) == 0 {
		return
	}
	var list []string
	for class, name := range c.missing {
		list = append(list, fmt.Sprintf("class %d %s", class, name))
	}
	slices.Sort(list)
	fmt.Fprintf(out, "%s: the font has no glyphs for some characters of %s: boxes stand for them; --font FILE takes "+
		"others\n", c.Path, strings.Join(list, ", "))
}

// share writes a probability: one below 1 is never 100 %.
func share(p float64) string {
	if p < 1 && p >= 0.9995 {
		return ">99.9 %"
	}
	return fmt.Sprintf("%.1f %%", 100*p)
}

// lossOf writes a loss, also one that is no number.
func lossOf(x float64) string {
	if math.IsInf(x, 1) {
		return "not finite"
	}
	return fmt.Sprintf("%.3g", x)
}
