package format

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/internal/datatest"
)

func TestShardsIndex(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("long/", 50) + "key" // needs a PAX header
	red, blue := datatest.PNG(t, 4, 4, 1), datatest.JPEG(t, 9, 4, 2)
	datatest.Write(t, dir, "train-0.tar", datatest.Tar(t,
		datatest.File("a.b/", nil),
		datatest.Text("a.b/x.json", "{}"), datatest.File("a.b/x.png", red), datatest.Text("a.b/x.cls", " 1\n"),
		datatest.Text("._y.jpg", "of another system"),
		datatest.Text("y.cls", "2"), datatest.File("y.JPG", blue),
	))
	datatest.Write(t, dir, "train-1.tar", datatest.Tar(t)) // no samples
	datatest.Write(t, dir, "train-2.tar", datatest.Tar(t,
		datatest.Text("z.cls", "0"), datatest.File("z.seg.png", red), datatest.File("z.jpeg", blue),
		datatest.File(long+".png", red), datatest.Text(long+".cls", "3"),
	))
	datatest.Write(t, dir, "val-0.tar", datatest.Tar(t, datatest.File("v.png", red), datatest.Text("v.cls", "3")))
	train, val, err := openPlace(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, train, val)
	if want := []string{"0", "1", "2", "3"}; !slices.Equal(train.Classes(), want) ||
		!slices.Equal(val.Classes(), want) {
		t.Errorf("classes %q and %q, want %q", train.Classes(), val.Classes(), want)
	}
	want := []struct {
		name         string
		label, width int
	}{
		{"train-0.tar/a.b/x", 1, 4}, {"train-0.tar/y", 2, 9}, {"train-2.tar/z", 0, 9}, {"train-2.tar/" + long, 3, 4},
	}
	if train.Len() != len(want) || val.Len() != 1 {
		t.Fatalf("%d and %d images, want %d and 1", train.Len(), val.Len(), len(want))
	}
	var s Buffer
	for i, w := range want {
		if got := train.Name(i); got != filepath.Join(dir, w.name[:11])+w.name[11:] {
			t.Errorf("name %q, want …/%s", got, w.name)
		}
		img, err := decode(train, i, &s)
		if err != nil {
			t.Fatal(err)
		}
		if train.Label(i) != w.label || img.Width != w.width {
			t.Errorf("%s: label %d, width %d, want %+v", train.Name(i), train.Label(i), img.Width, w)
		}
	}
}

func TestShardLabels(t *testing.T) {
	image := datatest.PNG(t, 2, 2, 0)
	shard := func(labels ...string) []byte {
		var members []datatest.Member
		for i, label := range labels {
			key := fmt.Sprintf("key%d", i)
			members = append(members, datatest.File(key+".png", image), datatest.Text(key+".cls", label))
		}
		return datatest.Tar(t, members...)
	}
	for _, c := range []struct {
		name     string
		list     string // classes.txt
		labels   []string
		classes  []string
		want     []int
		mentions []string
	}{
		{name: "numbers", labels: []string{"2", "0"}, want: []int{2, 0}},
		{name: "names", list: "cat\ndog\r\n", labels: []string{"dog", "0"}, want: []int{1, 0}},
		{name: "by name", list: "cat\ndog\n", labels: []string{"dog", "0"}, classes: []string{"dog", "fish", "cat"},
			want: []int{0, 2}},
		{name: "by index", labels: []string{"1"}, classes: []string{"dog", "fish"}, want: []int{1}},
		{name: "to numbers", list: "cat\ndog\n", labels: []string{"dog"}, classes: []string{"0", "1"}, want: []int{1}},
		{name: "unused class", list: "cat\ndog\n", labels: []string{"1"}, classes: []string{"dog"}, want: []int{0}},
		{name: "beyond list", list: "cat\ndog\n", labels: []string{"0", "2"},
			mentions: []string{"train-0.tar", "key1", "label 2", "[0, 2)"}},
		{name: "beyond classes", labels: []string{"0", "2"}, classes: []string{"a", "b"},
			mentions: []string{"train-0.tar", "key1", "label 2"}},
		{name: "negative", labels: []string{"-1"}, mentions: []string{"train-0.tar", "key0", "label -1"}},
		{name: "huge", labels: []string{"99999999"}, mentions: []string{"train-0.tar", "key0", "99999999"}},
		{name: "far", labels: []string{"65535"}, want: []int{65535}},
		{name: "too far", labels: []string{"0", "65536"}, mentions: []string{"label 65536 among 2 images", "--classes"}},
		{name: "no list", labels: []string{"dog"}, mentions: []string{"train-0.tar", "key0", `"dog"`, "classes.txt"}},
		{name: "not in list", list: "cat\n", labels: []string{"dog"}, mentions: []string{"key0", `"dog"`}},
		{name: "not in classes", list: "cat\ndog\n", labels: []string{"dog"}, classes: []string{"cat"},
			mentions: []string{"key0", `"dog"`}},
		{name: "gap in list", list: "cat\n\ndog\n", labels: []string{"0"}, mentions: []string{"classes.txt", "line 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			datatest.Write(t, dir, "train-0.tar", shard(c.labels...))
			if c.list != "" {
				datatest.Write(t, dir, "classes.txt", []byte(c.list))
			}
			ds, _, err := openPlace(dir, c.classes)
			if c.mentions != nil {
				datatest.WantError(t, err, c.mentions...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if ds.Label(i) != want {
					t.Errorf("label %d is %d, want %d", i, ds.Label(i), want)
				}
			}
		})
	}
}

func TestShardErrors(t *testing.T) {
	image := datatest.PNG(t, 2, 2, 0)
	for _, c := range []struct {
		name    string
		members []datatest.Member
		want    []string
	}{
		{"no label", []datatest.Member{datatest.File("a.png", image)}, []string{"key a", "no .cls"}},
		{"no image", []datatest.Member{datatest.Text("a.cls", "0"), datatest.File("b.png", image),
			datatest.Text("b.cls", "0")}, []string{"key a", "no image"}},
		{"other image", []datatest.Member{datatest.File("a.ppm", image), datatest.Text("a.cls", "0")},
			[]string{"key a", ".ppm"}},
		{"two images", []datatest.Member{datatest.File("a.png", image), datatest.File("a.jpg", image),
			datatest.Text("a.cls", "0")}, []string{"key a", "two images"}},
		{"two labels", []datatest.Member{datatest.File("a.png", image), datatest.Text("a.cls", "0"),
			datatest.Text("a.cls", "1")}, []string{"key a", "two .cls"}},
		{"long label", []datatest.Member{datatest.Text("a.cls", strings.Repeat("0", 1000))}, []string{"key a", "1000"}},
		{"json without label", []datatest.Member{datatest.File("a.png", image),
			datatest.Text("a.json", `{"filename": "a.png"}`)}, []string{"key a", "no .cls"}},
		{"bad json", []datatest.Member{datatest.File("a.png", image), datatest.Text("a.json", `{"label": 1`)},
			[]string{"key a", ".json"}},
		{"nothing", nil, []string{"no samples"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			datatest.Write(t, dir, "train-7.tar", datatest.Tar(t, c.members...))
			_, _, err := openPlace(dir, nil)
			datatest.WantError(t, err, c.want...)
		})
	}
}

func TestShardCutAnywhere(t *testing.T) {
	whole := datatest.Tar(t,
		datatest.File("a.png", datatest.PNG(t, 16, 16, 0)), datatest.Text("a.cls", "0"),
		datatest.File("b.jpg", datatest.JPEG(t, 8, 8, 1)), datatest.Text("b.cls", "1"))
	count := func(b []byte) (n int, err error) {
		err = indexShard(bytes.NewReader(b), int64(len(b)), func(shardEntry) error { n++; return nil })
		return n, err
	}
	if n, err := count(whole); n != 2 || err != nil {
		t.Fatalf("the whole shard has %d samples, error %v", n, err)
	}
	// Two blocks of zeros end the archive; one is enough to know that nothing is missing.
	end := len(whole) - 2*tarBlock
	for size := 0; size < end+tarBlock; size++ {
		if n, err := count(whole[:size]); err == nil {
			t.Fatalf("cut to %d of %d bytes: %d samples and no error", size, len(whole), n)
		} else if !strings.Contains(err.Error(), "offset") {
			t.Fatalf("cut to %d bytes: error %q does not name the offset", size, err)
		}
	}
	dir := t.TempDir()
	datatest.Write(t, dir, "train-0.tar", whole)
	datatest.Write(t, dir, "train-1.tar", whole[:end/2/tarBlock*tarBlock])
	_, _, err := openPlace(dir, nil)
	datatest.WantError(t, err, "train-1.tar", "offset")
}

func TestShardsStayReadable(t *testing.T) {
	dir := t.TempDir()
	image := datatest.PNG(t, 2, 2, 0)
	datatest.Write(t, dir, "train-0.tar", datatest.Tar(t, datatest.File("a.png", image), datatest.Text("a.cls", "0")))
	ds, _, err := openPlace(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, ds)
	want := fingerprint(t, ds)
	for _, keep := range []bool{true, false} {
		ds.(verbatim).files[0].keep = keep
		if err := ds.(verbatim).Close(); err != nil {
			t.Fatal(err)
		}
		if got := fingerprint(t, ds); got != want {
			t.Errorf("keep=%t: other pixels after Close", keep)
		}
	}
}

func FuzzIndexShard(f *testing.F) {
	whole := datatest.Tar(f, datatest.File("a.png", datatest.PNG(f, 2, 2, 0)), datatest.Text("a.cls", "0"))
	f.Add(whole)
	f.Add(whole[:700])
	f.Add(datatest.Tar(f, datatest.File(strings.Repeat("x/", 90)+"a.png", nil), datatest.Text("b.cls", "x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = indexShard(bytes.NewReader(b), int64(len(b)), func(e shardEntry) error {
			if e.offset < 0 || e.size < 0 || e.offset+e.size > int64(len(b)) {
				t.Errorf("sample %q at [%d, +%d) of %d bytes", e.key, e.offset, e.size, len(b))
			}
			return nil
		})
	})
}

// FuzzShards opens and reads a whole shard, whose labels may claim any number of classes.
func FuzzShards(f *testing.F) {
	for _, label := range []string{"0", "1048575", "2147483647"} {
		f.Add(datatest.Tar(f, datatest.File("a.png", datatest.PNG(f, 2, 2, 0)), datatest.Text("a.cls", label)))
	}
	path := filepath.Join(f.TempDir(), "train-0.tar")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ds, err := openShards([]string{path}, nil)
		runtime.ReadMemStats(&after)
		if total := after.TotalAlloc - before.TotalAlloc; total > 16<<20+100*uint64(len(b)) {
			t.Fatalf("a shard of %d bytes took %d MB", len(b), total>>20)
		}
		if err == nil {
			readAll(t, ds)
		}
	})
}

func TestSplitKey(t *testing.T) {
	for name, want := range map[string][2]string{
		"a.jpg": {"a", "jpg"}, "d/a.seg.PNG": {"d/a", "seg.png"}, "d.e/f.cls": {"d.e/f", "cls"},
		"./a.cls": {"./a", "cls"},
		"a":       {}, ".a": {}, "d.e/f": {}, "d/.f.jpg": {},
	} {
		key, ext, ok := splitKey(name)
		if got := [2]string{key, ext}; got != want || ok != (want[0] != "") {
			t.Errorf("%q splits into %q (%t), want %q", name, got, ok, want)
		}
	}
}
