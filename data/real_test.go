package data

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/internal/datatest"
	"onlinerna/internal/testdata"
)

func TestRealCIFAR(t *testing.T) {
	train, val, err := Open(testdata.Shared(t, "data/cifar10"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, train, val)
	if train.Len() != 20000 || val.Len() != 4000 {
		t.Fatalf("%d and %d images", train.Len(), val.Len())
	}
	for _, ds := range []Dataset{train, val} {
		for i := range ds.Len() { // keys are <class>_<number>
			name := filepath.Base(ds.Name(i))
			if class := ds.Classes()[ds.Label(i)]; !strings.HasPrefix(name, class+"_") {
				t.Fatalf("%s has class %s", ds.Name(i), class)
			}
		}
	}
	p, err := ProfileOf(train)
	if err != nil || p.Name != "cifar" || p.Size != 32 {
		t.Errorf("profile %+v, %v", p, err)
	}
	l := newLoader(t, val, p.Eval(32), LoaderOptions{Batch: 100, Limit: 5})
	if got := len(indices(collect(t, l, 0, 0))); got != 500 {
		t.Errorf("%d images, want 500", got)
	}
}

func TestRealImageNet(t *testing.T) {
	dir := testdata.Shared(t, "data/imagenet-sample")
	train, val, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 62 || val.Len() != 13 || len(train.Classes()) != 62 {
		t.Fatalf("%d and %d images, %d classes", train.Len(), val.Len(), len(train.Classes()))
	}
	alone, err := OpenEval(filepath.Join(dir, "val"), train.Classes(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, ds := range []Dataset{train, val, alone} {
		for i := range ds.Len() {
			class := filepath.Base(filepath.Dir(ds.Name(i)))
			if got := ds.Classes()[ds.Label(i)]; got != class {
				t.Errorf("%s has class %s", ds.Name(i), got)
			}
		}
	}
	p, err := ProfileOf(train)
	if err != nil || p.Name != "imagenet" || p.Size != 224 {
		t.Errorf("profile %+v, %v", p, err)
	}
	l := newLoader(t, train, augment.TrainImageNet(64), LoaderOptions{Batch: 16, Shuffle: true})
	all := indices(collect(t, l, 0, 0))
	if slices.Sort(all); len(all) != 62 || all[61] != 61 {
		t.Errorf("images %v", all)
	}
}

func TestRealMNIST(t *testing.T) {
	train, val, err := Open(testdata.Shared(t, "data/mnist"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 8000 || val.Len() != 2000 || len(train.Classes()) != 10 {
		t.Fatalf("%d and %d images of %d classes", train.Len(), val.Len(), len(train.Classes()))
	}
	if got := []int{train.Label(0), train.Label(1), train.Label(2)}; !slices.Equal(got, []int{7, 2, 1}) {
		t.Errorf("labels %v, want 7, 2, 1", got)
	}
	p, err := ProfileOf(train)
	if err != nil || p.Name != "mnist" || p.Size != 28 {
		t.Errorf("profile %+v, %v", p, err)
	}
}
