package data

import (
	"errors"
	"image"
	"math"
	"strings"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/imaging"
)

// lazyRows are images whose input is the brightness of the image, read when it is wanted; some images or inputs are
// damaged.
type lazyRows struct {
	Dataset
	damaged, broken int
}

func (d lazyRows) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	if i == d.damaged {
		return nil, errors.New("damaged")
	}
	return d.Dataset.Read(i, region, s)
}
func (d lazyRows) Inputs() []Input { return []Input{{"brightness", 2}} }
func (d lazyRows) Input(i, k int, row []float32) error {
	row[0], row[1] = float32(6*i), 1
	if i == d.broken {
		row[1] = float32(math.NaN())
	}
	return nil
}

// Each row of a batch has the inputs of its image, in any order and on any rank, mixed as the images, and past images
// that cannot be read; one whose input is not finite is one of them.
func TestInputs(t *testing.T) {
	var images []image.Image
	var rows [][]float32
	for i := range 40 {
		m := image.NewGray(image.Rect(0, 0, 8, 8))
		for p := range m.Pix {
			m.Pix[p] = uint8(6 * i)
		}
		images, rows = append(images, image.Image(m)), append(rows, []float32{float32(i % 5), float32(-6 * i), 7})
	}
	set, err := FromImages([]string{"a"}, images, make([]int, 40))
	if err != nil {
		t.Fatal(err)
	}
	if set, err = WithInput(lazyRows{set, 7, 11}, "table", rows); err == nil {
		set, err = Subset(set, []int{9, 11, 7, 5, 3, 8, 13, 4, 5, 0, 20, 21, 22, 23})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []LoaderOptions{{}, {Mix: augment.Mix{Mixup: 1}, Substitute: true}, {Rank: 1, Ranks: 2},
		{Substitute: true}} {
		o.Batch, o.Shuffle, o.Workers, o.MaxBad = 5, true, 2, AllBad
		l, err := NewLoader(set, augment.EvalSmall(8), o)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for epoch := range 2 {
			for b, err := range l.Epoch(t.Context(), epoch, 0) {
				if err != nil {
					t.Fatal(err)
				}
				table, bright := b.Inputs["table"], b.Inputs["brightness"]
				if len(table) != 3*b.N || len(bright) != 2*b.N {
					t.Fatalf("%d and %d numbers for %d images", len(table), len(bright), b.N)
				}
				for n := range b.N {
					seen++
					x := float64(b.Images[64*n])
					if math.Abs(float64(bright[2*n])-x) > 1 || math.Abs(float64(table[3*n+1])+x) > 1 || table[3*n+2] != 7 {
						t.Errorf("%+v: an image of brightness %g has %v and %v", o, x, bright[2*n:2*n+2], table[3*n:3*n+3])
					}
				}
			}
		}
		if want := map[bool]int{false: 24, true: 28}[o.Substitute]; o.Ranks == 0 && seen != want {
			t.Errorf("%d images, want %d", seen, want)
		}
	}
	b, err := NewSampler(NewBudget(0, 1), 1, false).Sample(set, 4, augment.EvalSmall(8))
	if err != nil || b.Inputs["table"][1] != -18 {
		t.Error(b, err)
	}
}

// Sets with other inputs are other sets, and mistakes are named.
func TestInputMistakes(t *testing.T) {
	images := []image.Image{image.NewGray(image.Rect(0, 0, 2, 2)), image.NewGray(image.Rect(0, 0, 2, 2))}
	set, err := FromImages([]string{"a"}, images, []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, rows ...[]float32) Dataset {
		d, err := WithInput(set, name, rows)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	table := with("table", []float32{1}, []float32{2})
	for _, other := range []Dataset{set, with("table", []float32{1}, []float32{3}),
		with("other", []float32{1}, []float32{2})} {
		if d := IdentityOf(table).Differ(IdentityOf(other)); d != "the further inputs" {
			t.Errorf("differ in %q", d)
		}
	}
	if d := IdentityOf(table).Differ(IdentityOf(with("table", []float32{1}, []float32{2}))); d != "" {
		t.Errorf("equal sets differ in %q", d)
	}
	for want, make := range map[string]func() (Dataset, error){
		"1 rows for 2 images":   func() (Dataset, error) { return WithInput(set, "x", [][]float32{{1}}) },
		"of one number or more": func() (Dataset, error) { return WithInput(set, "x", [][]float32{{}, {}}) },
		"row 1 has 2 numbers":   func() (Dataset, error) { return WithInput(set, "x", [][]float32{{1}, {1, 2}}) },
		"an input table already": func() (Dataset, error) {
			return WithInput(table, "table", [][]float32{{1}, {1}})
		},
		"row 1: input x: number 0 is +Inf": func() (Dataset, error) {
			return WithInput(set, "x", [][]float32{{1}, {float32(math.Inf(1))}})
		},
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
