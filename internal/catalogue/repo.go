package catalogue

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Repo is a repository of Hugging Face's hub, as timm/resnet50.a1_in1k.
type Repo struct {
	Owner, Name string
	Revision    string // a branch, a tag or a commit; "" means main
}

// RecordName is the name of the file that a repository's folder gets when it is whole.
const RecordName = ".rna.json"

var (
	repoName = regexp.MustCompile(
		`^([A-Za-z0-9][\w-]*)/([A-Za-z0-9](?:[\w.-]*\w)?)(?:@([A-Za-z0-9](?:[\w./-]*[\w-])?))?$`)
	fileNames = regexp.MustCompile(`\.(?i:safetensors|pth|pt|bin|ckpt|json|npz|gguf|onnx|h5|jpe?g|png|csv)$`)
)

// ParseRepo takes a repository's name apart, with a revision behind @ or without, which is @main. Names of files are
// none.
func ParseRepo(s string) (r Repo, ok bool) {
	m := repoName.FindStringSubmatch(s)
	if m == nil || fileNames.MatchString(m[2]) || strings.Contains(s, "..") {
		return r, false
	}
	if m[3] == "main" {
		m[3] = ""
	}
	r = Repo{m[1], m[2], m[3]}
	return r, filepath.IsLocal(r.Folder()) // not a device of Windows
}

// ID is the name without the revision.
func (r Repo) ID() string { return r.Owner + "/" + r.Name }

func (r Repo) String() string {
	if r.Revision != "" {
		return r.ID() + "@" + r.Revision
	}
	return r.ID()
}

// Folder is the repository's folder in the cache folder.
func (r Repo) Folder() string {
	name := r.Name
	if r.Revision != "" {
		name += "@" + strings.ReplaceAll(r.Revision, "/", "--")
	}
	return filepath.Join("hub", r.Owner, name)
}

// repoOf is the repository that a missing path means, and its folder, "" if it is not downloaded. A path whose first
// folder is here means a download alone.
func repoOf(path string) (r Repo, at string, ok bool) {
	if r, ok = ParseRepo(path); !ok {
		return r, "", false
	}
	if at = r.locate(); at == "" {
		_, err := os.Stat(r.Owner)
		ok = err != nil
	}
	return r, at, ok
}

// locate finds the repository in the cache folder, or in that of Hugging Face's own programs; "" if it is in neither.
func (r Repo) locate() string {
	if dir, err := Dir(); err == nil {
		at := filepath.Join(dir, r.Folder())
		if _, err := os.Stat(filepath.Join(at, RecordName)); err == nil {
			return at
		}
	}
	return r.snapshot()
}

// missing is the error for a repository that is not downloaded.
func (r Repo) missing() error {
	dir, err := Dir()
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is neither here nor in %s: \"rna get %[1]s\" downloads it if it is a repository of "+
		"Hugging Face's hub", r, filepath.Join(dir, r.Folder()))
}

// snapshot is the folder that Hugging Face's own programs have the revision's weights in, "" without one.
func (r Repo) snapshot() string {
	cache := HubCache()
	if cache == "" {
		return ""
	}
	at := filepath.Join(cache, "models--"+r.Owner+"--"+r.Name)
	commit := r.Revision
	if commit == "" {
		commit = "main"
	}
	if b, err := os.ReadFile(filepath.Join(at, "refs", filepath.FromSlash(commit))); err == nil {
		commit = strings.TrimSpace(string(b))
	}
	at = filepath.Join(at, "snapshots", commit)
	if commit != filepath.Base(commit) {
		return ""
	}
	all, _ := os.ReadDir(at)
	for _, e := range all {
		if ext := filepath.Ext(e.Name()); ext == ".safetensors" || ext == ".bin" {
			return at
		}
	}
	return "" // those programs may have brought the other files alone
}

// HubPath is the path in one of their variables, with ~ and other variables expanded as they do; "" without.
func HubPath(variable string) string {
	path := os.ExpandEnv(os.Getenv(variable))
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// HubHome is the folder of Hugging Face's own programs, by their variables; "" without any.
func HubHome() string {
	if dir := HubPath("HF_HOME"); dir != "" {
		return dir
	}
	dir := os.Getenv("XDG_CACHE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".cache")
	}
	return filepath.Join(dir, "huggingface")
}

// HubCache is the folder in which they keep repositories.
func HubCache() string {
	if dir := cmp.Or(HubPath("HF_HUB_CACHE"), HubPath("HUGGINGFACE_HUB_CACHE")); dir != "" {
		return dir
	}
	if home := HubHome(); home != "" {
		return filepath.Join(home, "hub")
	}
	return ""
}
