package catalogue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseRepo(t *testing.T) {
	for name, want := range map[string]Repo{
		"timm/resnet50.a1_in1k":          {Owner: "timm", Name: "resnet50.a1_in1k"},
		"facebook/dinov2-small@v1.0":     {Owner: "facebook", Name: "dinov2-small", Revision: "v1.0"},
		"google/vit@refs/pr/1":           {Owner: "google", Name: "vit", Revision: "refs/pr/1"},
		"laion/CLIP-ViT-B-32-laion2B-s3": {Owner: "laion", Name: "CLIP-ViT-B-32-laion2B-s3"},
	} {
		if got, ok := ParseRepo(name); !ok || got != want || got.String() != name {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if got, ok := ParseRepo("google/vit@main"); !ok || got != (Repo{Owner: "google", Name: "vit"}) {
		t.Errorf("google/vit@main: %+v, %v", got, ok)
	}
	for _, name := range []string{"resnet50", "a/b/c", "/a/b", "./a", "../a", "a/..", "a/b..c", "a/b@../c",
		"a/b@", "a/b@v1.", "a/b.", "a/", "a/last.pt", "a/model.safetensors", "a/cat.JPG", `a\b`, "a/b c", "https://a/b", ""} {
		if got, ok := ParseRepo(name); ok {
			t.Errorf("%q is the repository %+v", name, got)
		}
	}
}

// A repository is found when it is whole, or else in the cache of Hugging Face's programs.
func TestLocateRepo(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	t.Setenv(Variable, dir)
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HUGGINGFACE_HUB_CACHE", "")
	t.Setenv("HF_HOME", other)
	write := func(text string, path ...string) {
		t.Helper()
		to := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	locate := func(name, want string) {
		t.Helper()
		if got, err := Locate(name, Weights); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	locate("timm/net", "")
	if _, err := Locate("timm/net", Weights); !strings.Contains(err.Error(), `"rna get timm/net" downloads it`) {
		t.Error(err)
	}
	if at, err := Locate("timm/net", Images); at != "timm/net" || err != nil { // which is no set of images
		t.Error(at, err)
	}
	snapshots := filepath.Join(other, "hub", "models--timm--net", "snapshots")
	write("{}", snapshots, "abc", "config.json")
	locate("timm/net@abc", "")
	write("", snapshots, "abc", "model.safetensors")
	locate("timm/net", "")
	locate("timm/net@abc", filepath.Join(snapshots, "abc"))
	write("abc\n", other, "hub", "models--timm--net", "refs", "main")
	locate("timm/net", filepath.Join(snapshots, "abc"))
	write("../abc", other, "hub", "models--timm--net", "refs", "odd")
	locate("timm/net@odd", "")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	locate("timm/net", "")
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("SOME", other)
	for variable, dir := range map[string]string{"HUGGINGFACE_HUB_CACHE": "$SOME/hub", "HF_HUB_CACHE": "~/hub"} {
		t.Setenv("HF_HOME", t.TempDir())
		t.Setenv("HOME", other)
		t.Setenv("USERPROFILE", other)
		t.Setenv(variable, dir)
		locate("timm/net", filepath.Join(snapshots, "abc"))
		t.Setenv(variable, "")
	}

	at := filepath.Join(dir, "hub", "timm", "net")
	write("{}", at, "config.json")
	locate("timm/net", "")
	write("{}", at, RecordName)
	locate("timm/net", at)
	locate("timm/net@v1", "")
	if !NamesWeights("timm/net") || !NamesWeights("resnet50") || NamesWeights("cifar10") || NamesWeights("timm/cat.jpg") {
		t.Error("names of weights")
	}

	// Paths below a folder that is here are local, but for downloads.
	t.Chdir(t.TempDir())
	write("", "timm", "a.txt")
	locate("timm/net", at)
	if got, err := Locate("timm/other", Weights); got != "timm/other" || err != nil {
		t.Error(got, err)
	}
	if !NamesWeights("timm/net") || NamesWeights("timm/other") {
		t.Error("names of weights beside a folder of the owner's name")
	}
}
