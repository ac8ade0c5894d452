package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onlinerna/internal/catalogue"
)

// hub answers as Hugging Face's does for the repository some/net. Weights are on another host.
type hub struct {
	*httptest.Server
	store *httptest.Server
	files map[string][]byte
	owner string // whose token opens the files, "" for all
	at    string // the commit, "" for that of commit
	fails int    // answers by 503 before others
	asked []string
}

const commit = "0123456789abcdef0123456789abcdef01234567"

func gitSum(b []byte) string {
	h := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...))
	return hex.EncodeToString(h[:])
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked = append(h.asked, r.URL.Path)
	refuse := func(status int, why string) {
		w.Header().Set("X-Error-Code", why)
		w.WriteHeader(status)
	}
	if h.fails--; h.fails >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	now := cmp.Or(h.at, commit)
	if strings.HasSuffix(r.Header.Get("Authorization"), " expired") {
		w.Header().Set("X-Error-Message", "Invalid credentials in Authorization header")
		refuse(http.StatusUnauthorized, "")
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, "/some/net/resolve/"+now+"/"); ok {
		if h.owner != "" && r.Header.Get("Authorization") != "Bearer "+h.owner {
			refuse(http.StatusUnauthorized, "GatedRepo")
		} else if b, ok := h.files[name]; ok && filepath.Ext(name) == ".json" {
			w.Write(b)
		} else if ok {
			http.Redirect(w, r, h.store.URL+"/"+name, http.StatusFound)
		} else {
			refuse(http.StatusNotFound, "EntryNotFound")
		}
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/models/some/net/revision/")
	switch {
	case !ok:
		refuse(http.StatusUnauthorized, "RepoNotFound")
		return
	case rest != "main" && rest != "v1":
		refuse(http.StatusNotFound, "RevisionNotFound")
		return
	}
	var list []map[string]any
	for name, b := range h.files {
		e := map[string]any{"rfilename": name, "size": len(b), "blobId": gitSum(b)}
		if filepath.Ext(name) != ".json" {
			e["blobId"] = gitSum([]byte("a pointer"))
			e["lfs"] = map[string]any{"size": len(b), "sha256": sumOf(b), "pointerSize": 9}
		}
		list = append(list, e)
	}
	json.NewEncoder(w).Encode(map[string]any{"sha": now, "siblings": list})
}

// content answers for the host of weights, which refuses requests with a token.
func (h *hub) content(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.files[filepath.Base(r.URL.Path)]))
}

func newHub(t *testing.T, h *hub) *hub {
	h.Server, h.store = httptest.NewServer(h), httptest.NewServer(http.HandlerFunc(h.content))
	t.Cleanup(h.Close)
	t.Cleanup(h.store.Close)
	t.Setenv("HF_ENDPOINT", h.URL+"/")
	return h
}

func all(names []string) []string { return names }

func TestRepo(t *testing.T) {
	weights := random(200_000)
	h := newHub(t, &hub{owner: "me", fails: 2,
		files: map[string][]byte{"config.json": []byte("{}"), "model.safetensors": weights, "onnx/model.bin": {1}}})
	o := options(t)
	o.Token = "me"
	dir := t.TempDir()
	r := catalogue.Repo{Owner: "some", Name: "net", Revision: "v1"}
	for range 2 {
		it, err := Repo(t.Context(), r, all, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(it.Files) != 2 {
			t.Errorf("files %+v", it.Files)
		}
		path, err := Get(t.Context(), it, dir, o)
		if err != nil || path != filepath.Join(dir, "hub", "some", "net@v1") {
			t.Fatal(path, err)
		}
		for name, want := range map[string]string{"config.json": "{}", "model.safetensors": string(weights),
			catalogue.RecordName: `{"commit":"` + commit + `","repository":"some/net"}`} {
			if b, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(b) != want {
				t.Errorf("%s: %d bytes, %v", name, len(b), err)
			}
		}
	}
	if n := strings.Count(strings.Join(h.asked, " "), "/resolve/"); n != 2 {
		t.Errorf("%d files were asked for: %q", n, h.asked)
	}
	h.files["config.json"] = []byte("[]")
	it, err := Repo(t.Context(), r, all, o)
	if err == nil {
		_, err = Get(t.Context(), it, dir, o)
	}
	if err == nil || !strings.Contains(err.Error(), "config.json") || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a changed file: %v", err)
	}
}

// A server that sends other bytes than its list says is found out, for both kinds of checksums.
func TestRepoChecks(t *testing.T) {
	for _, name := range []string{"config.json", "model.safetensors"} {
		h := newHub(t, &hub{files: map[string][]byte{name: []byte("right")}})
		it, err := Repo(t.Context(), catalogue.Repo{Owner: "some", Name: "net"}, all, options(t))
		if err != nil {
			t.Fatal(err)
		}
		h.files[name] = []byte("wrong")
		dir := t.TempDir()
		if path, err := Get(t.Context(), it, dir, options(t)); err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("%s: %s, %v", name, path, err)
		}
		if _, err := os.Stat(filepath.Join(it.Path(dir), catalogue.RecordName)); err == nil {
			t.Errorf("%s: the repository counts as whole", name)
		}
	}
}

func TestRepoErrors(t *testing.T) {
	h := newHub(t, &hub{owner: "me", files: map[string][]byte{"README.md": []byte("x")}})
	none := func([]string) []string { return nil }
	for _, c := range []struct {
		repo, token, want string
		mirror            string
	}{
		{repo: "some/net", token: "expired", want: "the token is not valid"},
		{repo: "some/other", token: "me", want: "is not there, or is private"},
		{repo: "some/net@v9", token: "me", want: "has no revision v9"},
		{repo: "some/net", token: "me", want: "has no weights that rna reads: it has [\"README.md\"]"},
		{repo: "some/net", mirror: "http://127.0.0.1:1", want: "http://127.0.0.1:1/some/net/tree/main"},
		{repo: "some/net@v1", mirror: "http://127.0.0.1:1", want: "http://127.0.0.1:1/some/net/tree/v1"},
	} {
		r, ok := catalogue.ParseRepo(c.repo)
		if !ok {
			t.Fatal(c.repo)
		}
		o := options(t)
		o.Token, o.Mirror = c.token, c.mirror
		if _, err := Repo(context.Background(), r, none, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.repo, err, c.want)
		}
	}
	for _, answer := range []string{"", "<html>", `{"sha": "../../x1234567", "siblings": []}`,
		`{"sha": "0123456789", "siblings": [{"rfilename": "model.safetensors", "size": 3}]}`,
		`{"sha": "0123456789", "siblings": [{"rfilename": "../model.bin", "size": 3, "blobId": "` + commit + `"}]}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		o := options(t)
		o.Mirror = s.URL
		if it, err := Repo(t.Context(), catalogue.Repo{Owner: "some", Name: "net"}, all, o); err == nil {
			t.Errorf("%s: %+v", answer, it)
		}
		s.Close()
	}
	if len(h.asked) != 4 {
		t.Errorf("errors that last are asked for again: %q", h.asked)
	}
	it, err := Repo(t.Context(), catalogue.Repo{Owner: "some", Name: "net"}, all, options(t))
	if err == nil {
		_, err = Get(t.Context(), it, t.TempDir(), options(t))
	}
	if err == nil || !strings.Contains(err.Error(), "accept its terms") {
		t.Errorf("a repository with terms: %v", err)
	}
}

// The files of two commits are not mixed.
func TestRepoCommits(t *testing.T) {
	h := newHub(t, &hub{files: map[string][]byte{"config.json": []byte("{}"), "model.safetensors": []byte("one")}})
	dir := t.TempDir()
	get := func() (string, error) {
		it, err := Repo(t.Context(), catalogue.Repo{Owner: "some", Name: "net"}, all, options(t))
		if err != nil {
			t.Fatal(err)
		}
		return Get(t.Context(), it, dir, options(t))
	}
	path, err := get()
	if err != nil {
		t.Fatal(err)
	}
	record := func(want string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(path, catalogue.RecordName))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
	}
	h.at = strings.Repeat("1", 40)
	if _, err := get(); err != nil {
		t.Error("the same files:", err)
	}
	record(h.at)
	kept := h.at
	h.at = strings.Repeat("2", 40)
	for _, files := range []map[string][]byte{
		{"config.json": []byte("{}"), "model.safetensors": []byte("two")},
		{"config.json": []byte("[]"), "model.safetensors": []byte("one")},
		{"config.json": []byte("{}"), "pytorch_model.bin": []byte("one")},
	} {
		h.files = files
		if _, err := get(); err == nil || !strings.Contains(err.Error(), "Remove or rename the folder") {
			t.Errorf("%v: %v", files, err)
		}
		record(kept)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if _, err := get(); err != nil {
		t.Error(err)
	}
	record(h.at)
}

// A listing that stops is asked for again; the token is sent neither to another host nor without encryption.
func TestRepoListing(t *testing.T) {
	h := &hub{files: map[string][]byte{"model.safetensors": []byte("one")}}
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			h.ServeHTTP(w, r)
			return
		}
		fmt.Fprint(w, "{")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	o := options(t)
	o.Mirror, o.Idle = s.URL, 200*time.Millisecond
	if _, err := Repo(t.Context(), catalogue.Repo{Owner: "some", Name: "net"}, all, o); err != nil || asked != 2 {
		t.Error(asked, err)
	}

	var plain Options
	plain.fill()
	for to, kept := range map[string]bool{"https://a.b/y": true, "http://a.b/y": false, "https://c.a.b/y": false} {
		from, _ := http.NewRequest(http.MethodGet, "https://a.b/x", nil)
		req, _ := http.NewRequest(http.MethodGet, to, nil)
		req.Header.Set("Authorization", "Bearer me")
		if err := plain.Client.CheckRedirect(req, []*http.Request{from}); err != nil ||
			(req.Header.Get("Authorization") != "") != kept {
			t.Errorf("%s: %v, %v", to, req.Header, err)
		}
	}
}

// The token is that of the environment, or of the file in which Hugging Face's programs keep it.
func TestHubToken(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HF_TOKEN", "")
	t.Setenv("HUGGING_FACE_HUB_TOKEN", "")
	t.Setenv("HF_TOKEN_PATH", "")
	t.Setenv("HF_HOME", home)
	if got := HubToken(); got != "" {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(home, "token"), []byte("kept\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := HubToken(); got != "kept" {
		t.Error(got)
	}
	t.Setenv("HF_TOKEN", " given ")
	if got := HubToken(); got != "given" {
		t.Error(got)
	}
}
