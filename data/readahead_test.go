package data

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/imaging"
	"onlinerna/data/internal/datatest"
	"onlinerna/data/random"
	"onlinerna/data/rawfile"
)

// expected is a set that records the read-ahead requests, and blocks reads until a step of four is requested.
type expected struct {
	fake
	list *[]int
	step chan struct{}
}

func (d expected) Expect(i int) {
	*d.list = append(*d.list, i)
	if len(*d.list) == 4 {
		close(d.step)
	}
}

func (d expected) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	<-d.step
	return d.fake.Read(i, region, s)
}

func TestReadAhead(t *testing.T) {
	ds := expected{fake{n: 40}, new([]int), make(chan struct{})}
	half, err := Subset(ds, []int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, half, augment.EvalSmall(2), LoaderOptions{Batch: 4, Workers: 2, Shuffle: true, Seed: 3})
	batches := collect(t, l, 1, 0)
	want := slices.Clone(indices(batches)[4:])
	for i := range want {
		want[i] *= 2
	}
	got := *ds.list
	if len(got) < 4 {
		t.Fatalf("expected %v of %v", got, want)
	}
	// Read-ahead skips a step while earlier steps are unread, and the rest of a step once the epoch has ended.
	for len(got) > 0 {
		n := min(4, len(got))
		at := slices.Index(want, got[0])
		if at < 0 || at%4 != 0 || !slices.Equal(want[at:at+n], got[:n]) {
			t.Fatalf("expected %v: not the next of %v", got[:n], want)
		}
		want, got = want[at+4:], got[n:]
	}
}

// allocations returns the number of allocations for reading and transforming an image of ds as the loader does.
func allocations(t *testing.T, ds Dataset) float64 {
	w := newWorker(augment.TrainImageNet(24), &LoaderOptions{Workers: 1, Budget: NewBudget(0, 1)}, 0)
	dst := make([]uint8, 24*24*3)
	sample := func() {
		for i := range ds.Len() {
			w.random = random.New(1, uint64(i))
			img, err := ds.Read(i, w.region, &w.scratch)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := augment.TrainImageNet(24).Apply(dst, img, &w.random, &w.scratch.augment); err != nil {
				t.Fatal(err)
			}
			expect(ds, i)
		}
	}
	sample()
	return testing.AllocsPerRun(3, sample) / float64(ds.Len())
}

// Reading a sample from a large file allocates nothing; reading a separate file allocates only to open it.
func TestSampleAllocations(t *testing.T) {
	dir := t.TempDir()
	var members []datatest.Member
	var list []byte
	for i := range 8 {
		b := datatest.JPEG(t, 60+i, 50, i)
		datatest.Write(t, dir, fmt.Sprintf("folder/train/a/%d.jpg", i), b)
		members = append(members, datatest.File(fmt.Sprintf("%d.jpg", i), b),
			datatest.Text(fmt.Sprintf("%d.cls", i), "0"))
		list = append(list, datatest.Record(datatest.Bytes("image/encoded", string(b)),
			datatest.Int("image/class/label", 1, true))...)
	}
	datatest.Write(t, dir, "shards/train-0.tar", datatest.Tar(t, members...))
	datatest.Write(t, dir, "records/train-00000-of-00001", list)
	datatest.Write(t, dir, "raw/classes.txt", []byte("a\n"))
	f, err := os.Create(dir + "/raw/train-0.rnaraw")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := rawfile.NewWriter(f)
	if err == nil {
		err = errors.Join(w.Add(make([]uint8, 50*40*3), 50, 40, 0, "a"), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for place, most := range map[string]float64{dir + "/shards": 0, dir + "/records": 0, dir + "/raw": 0,
		"format/testdata/parquet/plain": 0, dir + "/folder": 20} {
		ds, _, err := Open(place, Options{})
		if err != nil {
			t.Fatal(err)
		}
		datatest.Close(t, ds)
		if n := allocations(t, ds); n > most {
			t.Errorf("%s: %g allocations an image, want %g at most", place, n, most)
		} else {
			t.Logf("%s: %g allocations an image", place, n)
		}
	}
}
