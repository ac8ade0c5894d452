package data

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/random"
)

// unequal is a set whose classes 0, 2 and 3 have 1, 70 and 29 images; class 1 has none.
type unequal struct{ fake }

func (unequal) Classes() []string { return []string{"a", "b", "c", "d"} }
func (unequal) Label(i int) int {
	switch {
	case i == 50:
		return 0
	case i%10 < 3:
		return 3
	}
	return 2
}

func newUnequal() unequal { return unequal{fake{n: 100}} }

// Classes occur equally often; a class repeats an image only after all others of it.
func TestBalancedOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 50, 99, 100, 1000} {
		source := random.New(4, uint64(n))
		order, uses := balancedOrder(newUnequal(), n, &source)
		classes, images, seen := map[int]int{}, map[int32]int{}, map[[2]int32]bool{}
		for i, image := range order {
			classes[newUnequal().Label(int(image))]++
			images[image]++
			if key := [2]int32{image, uses[i]}; seen[key] {
				t.Fatalf("%d images: image %d has use %d twice", n, image, uses[i])
			} else {
				seen[key] = true
			}
		}
		if len(order) != n || classes[1] != 0 {
			t.Errorf("%d images: got %d, classes %v", n, len(order), classes)
		}
		for _, class := range []int{0, 2, 3} {
			if got := classes[class]; got != n/3 && got != n/3+min(1, n%3) {
				t.Errorf("%d images: class %d has %d", n, class, got)
			}
			var counts []int
			for i := range 100 {
				if newUnequal().Label(i) == class {
					counts = append(counts, images[int32(i)])
				}
			}
			if slices.Max(counts)-slices.Min(counts) > 1 {
				t.Errorf("%d images: those of class %d occur %v times", n, class, counts)
			}
		}
	}
}

// Epochs are a function of seed and epoch: two loaders, ranks, and a later start give the same images and crops.
// An image that occurs several times is augmented anew.
func TestBalancedLoader(t *testing.T) {
	opt := LoaderOptions{Batch: 8, Workers: 3, Shuffle: true, Seed: 5, Balanced: true}
	load := func(opt LoaderOptions, epoch, from int) []Batch {
		return collect(t, newLoader(t, newUnequal(), augment.TrainCIFAR(4), opt), epoch, from)
	}
	want := load(opt, 3, 0)
	if again := load(opt, 3, 0); !reflect.DeepEqual(again, want) {
		t.Error("two loaders differ")
	}
	if late := load(opt, 3, 7); !reflect.DeepEqual(late, want[7:]) {
		t.Error("a later start gives other batches")
	}
	if other := load(opt, 4, 0); slices.Equal(indices(other), indices(want)) {
		t.Error("two epochs have the same order")
	}
	shares := make([]Batch, 0, len(want))
	for step := range want {
		of := opt
		of.Rank, of.Ranks = step%2, 2
		shares = append(shares, load(of, 3, 0)[step/2])
	}
	if !reflect.DeepEqual(shares, want) {
		t.Error("ranks give other batches")
	}
	crops := map[string]bool{}
	for _, b := range want {
		for n := range b.N {
			if b.Index[n] == 50 {
				crops[fmt.Sprint(b.Crops[3*n:3*n+3])] = true
			}
		}
	}
	if len(crops) < 10 {
		t.Errorf("33 uses of an image have %d different crops", len(crops))
	}
	opt.Repeat = 3
	counts := make([]int, 4)
	for _, b := range load(opt, 0, 0) {
		for _, l := range b.Labels {
			counts[l]++
		}
	}
	for _, class := range []int{0, 2, 3} {
		if counts[class] < 31 || counts[class] > 36 {
			t.Errorf("repeated augmentation: classes have %v images", counts)
		}
	}
	opt.Shuffle = false
	if _, err := NewLoader(newUnequal(), augment.EvalSmall(4), opt); err == nil {
		t.Error("no error without Shuffle")
	}
}
