package main

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
	"onlinerna/internal/cli"
	"onlinerna/internal/sheet"
	"onlinerna/internal/text"
)

// sheetFlags are the options of a sheet of images with captions.
type sheetFlags struct {
	path, by, font string
	count          int
}

// What the images of a sheet are grouped by.
const (
	byNothing    = "none"
	byClass      = "class"
	byPrediction = "prediction"
)

// add adds the options but that of the path. by lists what images can be grouped by.
func (f *sheetFlags) add(g cli.Group, count string, most int, by ...string) {
	g.IntVar(&f.count, count, most, "`images` on the sheet")
	by = append([]string{byNothing}, by...)
	g.StringVar(&f.by, "group-by", byNothing, "group the images of the sheet by: "+strings.Join(by, ", "))
	g.Values("group-by", by...)
	g.StringVar(&f.font, "font", "", "`file` of a TrueType or OpenType font for captions, for characters that Liberation Sans lacks")
}

// check finds mistakes; count names the option of the number, by is what images can be grouped by.
func (f *sheetFlags) check(count string, by ...string) error {
	switch {
	case f.count < 1 || f.count > sheet.Most:
		return fmt.Errorf("--%s %d: want 1 to %d images", count, f.count, sheet.Most)
	case f.by != byNothing && !slices.Contains(by, f.by):
		return fmt.Errorf("--group-by %s: want %s", f.by, strings.Join(append([]string{byNothing}, by...), " or "))
	}
	if f.font == "" {
		return nil
	}
	_, err := sheet.LoadFonts(f.font)
	return err
}

// A sheetImage is an image of a set, with its caption.
type sheetImage struct {
	index   int            // in the set
	label   int            // -1 for none
	guesses []guess        // none where nothing is predicted
	loss    float64        // NaN for none
	seen    *imaging.Image // as the network sees it, nil where that is not shown
	alone   bool           // without the file's own picture

	picture image.Image // of the file, at the size of a tile; nil where it cannot be read
}

// gallery draws the images of a set.
type gallery struct {
	*sheetFlags
	title  string
	place  string // of the set, which captions leave out
	set    data.Dataset
	name   func(class int) guess
	budget *data.Budget
}

// draw writes a sheet of images, and says so.
func (g *gallery) draw(ctx context.Context, out io.Writer, list []sheetImage) error {
	if len(list) == 0 {
		return errors.New("no image to draw")
	}
	fonts, err := sheet.LoadFonts(g.font)
	if err != nil {
		return err
	}
	if err := g.read(ctx, list); err != nil {
		return err
	}
	c := &captions{gallery: g, fonts: fonts, missing: map[int]string{}}
	img, err := sheet.Draw(fonts, g.title, c.groups(list))
	if err != nil {
		return err
	}
	if err := sheet.Write(g.path, img); err != nil {
		return err
	}
	c.tell(out)
	return nil
}

// read decodes the images at their own size, and fits them into tiles.
func (g *gallery) read(ctx context.Context, list []sheetImage) error {
	each, ctx := errgroup.WithContext(ctx)
	workers := min(runtime.GOMAXPROCS(0), len(list))
	for k := range workers {
		each.Go(func() error {
			scratch := data.NewScratch(g.budget, workers)
			defer scratch.Release()
			for i := k; i < len(list); i += workers {
				if err := ctx.Err(); err != nil {
					return cli.Stopped("interrupted, no sheet was written")
				}
				m, err := g.set.Read(list[i].index, nil, scratch)
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

// captions are those of a gallery.
type captions struct {
	*gallery
	fonts   *sheet.Fonts
	missing map[int]string // names of classes for which the font has no glyphs
}

// groups are the tiles of the images, in the order of the list; the largest group comes first.
func (c *captions) groups(list []sheetImage) []sheet.Group {
	var groups []sheet.Group
	at := map[int]int{}
	for i := range list {
		x := &list[i]
		class := -1
		switch {
		case c.by == byClass:
			class = x.label
		case c.by == byPrediction && len(x.guesses) > 0:
			class = x.guesses[0].Class
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
	case c.by == byNothing:
		return sheet.Line{}
	case class < 0:
		return sheet.Line{Before: "no " + c.by}
	case c.by == byClass:
		return sheet.Line{Before: "label ", Name: c.class(class)}
	}
	return sheet.Line{Before: "predicted ", Name: c.class(class)}
}

// class is the name of a class, with its number where the font has no glyphs for it.
func (c *captions) class(class int) string {
	name := c.name(class).Name
	if c.fonts.Has(name) {
		return name
	}
	c.missing[class] = name
	return fmt.Sprintf("class %d %s", class, name)
}

func (c *captions) tile(x *sheetImage) sheet.Tile {
	t := sheet.Tile{Frame: color.Gray{0xc0}}
	if x.picture != nil && !x.alone {
		t.Pictures = append(t.Pictures, x.picture)
	}
	if x.seen != nil {
		if m, err := fitted(x.seen); err == nil {
			t.Pictures = append(t.Pictures, m)
		}
	}
	add := func(before, name, after string) {
		t.Caption = append(t.Caption, sheet.Line{Before: before, Name: name, After: after})
	}
	switch {
	case x.label < 0:
		for _, g := range x.guesses[:min(2, len(x.guesses))] {
			add("", c.class(g.Class), " "+share(g.Probability))
		}
	case math.IsNaN(x.loss):
		add("", c.class(x.label), "")
	case len(x.guesses) == 0:
		t.Frame = sheet.Wrong
		add("label: ", c.class(x.label), "")
		add("predicted: no number", "", "")
	default:
		t.Frame = sheet.Wrong
		if x.guesses[0].Class == x.label {
			t.Frame = sheet.Right
		}
		add("label: ", c.class(x.label), "")
		add("predicted: ", c.class(x.guesses[0].Class), "")
		add(fmt.Sprintf("%s, loss %s", share(x.guesses[0].Probability), lossOf(x.loss)), "", "")
	}
	if x.picture == nil {
		add("unreadable", "", "")
	}
	path := filepath.ToSlash(strings.TrimPrefix(c.set.Name(x.index), filepath.Clean(c.place)+string(filepath.Separator)))
	if cut := strings.LastIndexByte(path, '/') + 1; cut > 0 && c.fonts.Width(path) > sheet.Side {
		add("", path[:cut], "")
		path = path[cut:]
	}
	add("", path, "")
	return t
}

// tell says which names could not be drawn.
func (c *captions) tell(out io.Writer) {
	if len(c.missing) == 0 {
		return
	}
	var list []string
	for class, name := range c.missing {
		list = append(list, fmt.Sprintf("class %d %s", class, name))
	}
	slices.Sort(list)
	fmt.Fprintf(out, "%s: the font has no glyphs for some characters of %s: boxes stand for them; --font FILE takes others\n", c.path, strings.Join(list, ", "))
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
