package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"onlinerna/internal/catalogue"
)

// hubAddress is that of Hugging Face's hub.
const hubAddress = "https://huggingface.co"

// maxListing bounds a repository's list of files.
const maxListing = 32 << 20

// HubToken is the token of the user's account at the hub, from the places of Hugging Face's own programs; "" without.
func HubToken() string {
	if token := cmp.Or(os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN")); token != "" {
		return strings.TrimSpace(token)
	}
	path := catalogue.HubPath("HF_TOKEN_PATH")
	if home := catalogue.HubHome(); path == "" && home != "" {
		path = filepath.Join(home, "token")
	}
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// listing is the hub's answer about a repository.
type listing struct {
	Commit string `json:"sha"`
	Files  []struct {
		Name string `json:"rfilename"`
		Size int64  `json:"size"`
		Git  string `json:"blobId"`
		LFS  *struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		} `json:"lfs"`
	} `json:"siblings"`
}

// Repo asks the hub, or the server of HF_ENDPOINT or Options.Mirror, for a repository, and returns those of its files
// that wanted chooses, as an item for Get. They are those of the commit that the revision is now.
func Repo(ctx context.Context, r catalogue.Repo, wanted func(names []string) []string, o Options) (catalogue.Item,
	error) {
	o.fill()
	it := catalogue.Item{Name: r.String(), Kind: catalogue.Weights, Folder: r.Folder(),
		About: "weights of Hugging Face's hub"}
	at := strings.TrimSuffix(cmp.Or(o.Mirror, os.Getenv("HF_ENDPOINT"), hubAddress), "/")
	var l listing
	if err := o.list(ctx, at, r, &l); err != nil {
		return it, err
	}
	var names []string
	of := map[string]catalogue.File{}
	for _, f := range l.Files {
		if f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) || strings.ContainsAny(f.Name, `/\:`) {
			continue // in folders of the repository
		}
		file := catalogue.File{Name: f.Name, Size: f.Size, Git: f.Git,
			Addresses: []string{fmt.Sprintf("%s/%s/resolve/%s/%s", at, r.ID(), l.Commit, url.PathEscape(f.Name))}}
		if f.LFS != nil {
			file.Size, file.SHA256, file.Git = f.LFS.Size, f.LFS.SHA256, ""
		}
		if len(file.SHA256) != 64 && len(file.Git) != 40 || file.Size < 0 {
			return it, fmt.Errorf("%s/%s: the hub tells no checksum of %q", redacted(at), r.ID(), f.Name)
		}
		names = append(names, f.Name)
		of[f.Name] = file
	}
	for _, name := range wanted(names) {
		it.Files = append(it.Files, of[name])
	}
	if it.Files == nil {
		return it, fmt.Errorf("%s/%s has no weights that rna reads: %s", redacted(at), r.ID(), inWords(names))
	}
	var err error
	it.Record, err = json.Marshal(map[string]string{"repository": r.ID(), "commit": l.Commit})
	return it, err
}

// inWords lists the first of a repository's files, whose names may be any.
func inWords(names []string) string {
	if len(names) == 0 {
		return "it has no files outside folders"
	}
	const most = 8
	s := fmt.Sprintf("it has %q", names[:min(len(names), most)])
	if n := len(names) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

// list asks for a repository's files.
func (o *Options) list(ctx context.Context, at string, r catalogue.Repo, l *listing) error {
	address := fmt.Sprintf("%s/api/models/%s/revision/%s?blobs=true", at, r.ID(),
		url.PathEscape(cmp.Or(r.Revision, "main")))
	pause := o.Pause
	for failed := 1; ; failed++ {
		err := o.ask(ctx, address, at, r, l)
		var last *finalError
		if err == nil || ctx.Err() != nil || errors.As(err, &last) || failed == tries {
			return err
		}
		o.Log("%v: trying again in %v", err, pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func (o *Options) ask(ctx context.Context, address, at string, r catalogue.Repo, l *listing) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Idle, errIdle)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return &finalError{err}
	}
	o.sign(req)
	page := redacted(at) + "/" + r.ID()
	answer, err := o.Client.Do(req)
	if err != nil {
		return final("%s cannot be asked for %s: %w\nWithout a connection, download config.json and model.safetensors from "+
			"%s/tree/%s into a folder, and give that", redacted(at), r, plain(err), page, cmp.Or(r.Revision, "main"))
	}
	defer answer.Body.Close()
	switch code, why := answer.StatusCode, answer.Header.Get("X-Error-Code"); {
	case code == http.StatusOK:
		b, err := io.ReadAll(io.LimitReader(answer.Body, maxListing))
		if err != nil {
			return fmt.Errorf("%s: %w", redacted(address), cmp.Or(context.Cause(ctx), plain(err)))
		}
		if err := json.Unmarshal(b, l); err != nil || len(l.Commit) < 7 || url.PathEscape(l.Commit) != l.Commit {
			return final("%s: the answer is no list of a repository's files", redacted(address))
		}
		return nil
	case refused(answer) != nil:
		return final("%s: %w", page, refused(answer))
	case why == "RevisionNotFound":
		return final("%s has no revision %s", page, r.Revision)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound:
		return final("%s is not there, or is private: check the name, or give a token of an account by the environment "+
			"variable HF_TOKEN", page)
	case code < 500 && code != http.StatusTooManyRequests:
		return final("%s: %s", redacted(address), answer.Status)
	}
	return fmt.Errorf("%s: %s", redacted(address), answer.Status)
}

// refused is the error of an answer that another token may change, nil for other answers.
func refused(answer *http.Response) error {
	switch {
	case answer.Header.Get("X-Error-Code") == "GatedRepo":
		return errors.New("the repository is open to accounts that accept its terms: accept them on its page, and give a " +
			"token of the account by the environment variable HF_TOKEN")
	case answer.Header.Get("X-Error-Message") == "Invalid credentials in Authorization header":
		return errors.New("the token is not valid: give another by the environment variable HF_TOKEN, or none for an open " +
			"repository (without the variable, it is that of the file that Hugging Face's programs keep)")
	}
	return nil
}

// sign adds who asks.
func (o *Options) sign(req *http.Request) {
	req.Header.Set("User-Agent", o.Agent)
	if o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+o.Token)
	}
}
