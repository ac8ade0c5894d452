package format

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/internal/datatest"
)

// relative gives the names of the images of a folder relative to root.
func relative(t *testing.T, ds Set, root string) []string {
	t.Helper()
	var list []string
	for i := range ds.Len() {
		name, err := filepath.Rel(root, ds.Name(i))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, filepath.ToSlash(name))
	}
	return list
}

func TestFolderHasTorchvisionsOrder(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"b/2.jpg", "b/10.jpg", "b/z.JPEG", "b/A.PNG", "b/notes.txt", "b/x.webp", "b/x.ppm", "b/y.ppm", "b/1.pgm",
		"b/sub/1.png", "b/sub-x/1.png", "b/sub/deep/0.jpg",
		"B/1.jpeg", "a/1.jpg", ".hidden/1.jpg", "readme.jpg",
	} {
		datatest.Write(t, root, name, nil)
	}
	ds, err := OpenFolder(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"B", "a", "b"}; !slices.Equal(ds.Classes(), want) {
		t.Errorf("classes %q, want %q", ds.Classes(), want)
	}
	// sorted(os.walk(…)) compares whole paths: '-' sorts before '/'.
	want := []string{
		"B/1.jpeg", "a/1.jpg",
		"b/10.jpg", "b/2.jpg", "b/A.PNG", "b/x.webp", "b/z.JPEG", "b/sub/1.png", "b/sub-x/1.png", "b/sub/deep/0.jpg",
	}
	// "b/sub" < "b/sub-x" < "b/sub/deep"
	if got := relative(t, ds, root); !slices.Equal(got, want) {
		t.Errorf("files\n%q, want\n%q", got, want)
	}
	if notes := strings.Join(notesOf(ds), "\n"); !strings.Contains(notes, "2 files .ppm") ||
		!strings.Contains(notes, "1 files .pgm") {
		t.Errorf("notes %q do not count what is passed over", notes)
	}
	for i, label := range []int{0, 1, 2, 2, 2, 2, 2, 2, 2, 2} {
		if ds.Label(i) != label {
			t.Errorf("label of %s is %d, want %d", ds.Name(i), ds.Label(i), label)
		}
	}
}

func TestFolderFollowsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	root, elsewhere := t.TempDir(), t.TempDir()
	datatest.Write(t, elsewhere, "1.jpg", nil)
	datatest.Write(t, root, "a/0.jpg", nil)
	for link, target := range map[string]string{"b": elsewhere, "a/loop": root, "a/more": elsewhere} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	ds, err := OpenFolder(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/0.jpg", "a/loop/b/1.jpg", "a/more/1.jpg", "b/1.jpg"}
	if got := relative(t, ds, root); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

func TestFolderErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   []string
		folders []string
		classes []string
		want    []string
	}{
		{name: "no classes", files: []string{"1.jpg"}, want: []string{"without class folders"}},
		{name: "nothing", want: []string{"no class folders"}},
		{name: "empty classes", folders: []string{"a", "b"}, want: []string{"no class folder has images"}},
		{name: "text only", files: []string{"a/1.txt"}, want: []string{"no class folder has images"}},
		{name: "cannot decode", files: []string{"a/2.ppm", "a/1.pgm"}, want: []string{"1.pgm"}},
		{name: "unknown class", files: []string{"a/1.jpg", "c/1.jpg"}, classes: []string{"a", "b"},
			want: []string{`"c"`}},
		{name: "class twice", files: []string{"a/1.jpg"}, classes: []string{"a", "a"}, want: []string{`"a"`, "twice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for _, f := range c.files {
				datatest.Write(t, root, f, nil)
			}
			for _, f := range c.folders {
				if err := os.Mkdir(filepath.Join(root, f), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			_, err := OpenFolder(root, c.classes)
			datatest.WantError(t, err, c.want...)
		})
	}
}

func TestFolderReads(t *testing.T) {
	root := t.TempDir()
	datatest.Write(t, root, "a/1.JPEG", datatest.PNG(t, 7, 5, 1)) // content decides, not the name
	datatest.Write(t, root, "a/2.jpg", datatest.JPEG(t, 40, 30, 2))
	datatest.Write(t, root, "a/3.jpg", datatest.JPEG(t, 40, 30, 2)[:300])
	datatest.Write(t, root, "a/4.jpg", nil)
	ds, err := OpenFolder(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	var s Buffer
	for i, want := range [][2]int{{7, 5}, {40, 30}} {
		img, err := decode(ds, i, &s)
		if err != nil {
			t.Fatal(err)
		}
		if img.Width != want[0] || img.Height != want[1] || img.Channels != 3 {
			t.Errorf("image %d is %d×%d×%d", i, img.Width, img.Height, img.Channels)
		}
	}
	for i := 2; i < 4; i++ {
		_, err := decode(ds, i, &s)
		datatest.WantError(t, err, ds.Name(i))
	}
}
