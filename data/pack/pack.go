// Package pack makes sets that train fast: images no larger than needed, in a few large files that are read in place.
//
// A packed set is a folder with train-00000.tar and so on, val-00000.tar, WebDataset's shards with an index beside
// each, or with train-00000.rnaraw (package rawfile); classes.txt; SHA256SUMS, for sha256sum -c; and pack.json, which
// records the options and the dropped images. The same images and options give the same bytes for any number of
// workers.
package pack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/data"
)

// Options are the parameters of Run.
type Options struct {
	// Size is the largest shorter side: larger images are resized to it. Other images are copied unchanged, or
	// encoded again at Quality with Recode.
	Size int `json:"size"`
	// Quality is that of JPEG, 1 to 100. With Raw images are stored as pixels, the shorter side Size.
	Quality int  `json:"quality,omitempty"`
	Recode  bool `json:"recode,omitempty"`
	Raw     bool `json:"raw,omitempty"`
	// ShardBytes is the size at which a shard ends; 0 means 256 MB.
	ShardBytes int64 `json:"shard_bytes"`

	// Workers is the number of goroutines, 0 for one a CPU.
	Workers int `json:"-"`
	// Budget is the memory for decoding: an image too large for it ends packing with [data.ErrTooLarge]. Nil is
	// data.NewBudget(0, 1).
	Budget *data.Budget `json:"-"`
	// Progress, if not nil, is told how many images of a split are done.
	Progress func(split string, done, total int) `json:"-"`
}

// DefaultShardBytes is the usual size of a shard.
const DefaultShardBytes = 256_000_000

// Report is pack.json.
type Report struct {
	Options  Options `json:"options"`
	Source   string  `json:"source"` // fingerprint of the sets
	Splits   []Split `json:"splits"`
	Complete bool    `json:"complete"`
}

// Split reports on the training or the validation images.
type Split struct {
	Name    string    `json:"name"`
	Images  int       `json:"images"` // of the source
	Done    int       `json:"done"`   // of those: in the shards, or dropped
	Copied  int       `json:"copied"` // as they are
	Shards  []Shard   `json:"shards"`
	Dropped []Dropped `json:"dropped"`
}

// Shard is a file.
type Shard struct {
	File   string `json:"file"`
	Images int    `json:"images"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Dropped is an image that was left out.
type Dropped struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Kept is the number of images in the shards.
func (s *Split) Kept() int { return s.Done - len(s.Dropped) }

// The files of a packed set, beside the shards. Until it is complete the folder and its shards have temporary names,
// so that no reader opens a partial set.
const (
	reportFile  = "pack.json"
	classesFile = "classes.txt"
	sumsFile    = "SHA256SUMS"
	unfinished  = ".partial"
)

// Run packs the sets into the folder out; val may be nil. It resumes an earlier call with the same sets and options.
// Another process that packs into the same folder is an error.
func Run(ctx context.Context, train, val data.Dataset, out string, opt Options) (*Report, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	out = filepath.Clean(out)
	if err := vacant(out); err != nil {
		return nil, err
	}
	unlock, err := lock(partial(out))
	if err != nil {
		return nil, err
	}
	report, err := run(ctx, train, val, out, opt)
	return report, errors.Join(err, unlock())
}

// partial is the folder of a set that is not complete: its name and that of its lock fit into a file system's 255 bytes.
func partial(out string) string {
	const most = 255 - len(unfinished+".lock")
	dir, name := filepath.Split(out)
	if len(name) > most {
		sum := fmt.Sprintf("-%08x", crc32.ChecksumIEEE([]byte(name)))
		name = strings.ToValidUTF8(name[:most-len(sum)], "") + sum
	}
	return filepath.Join(dir, name+unfinished)
}

// vacant is an error if something has the name out.
func vacant(out string) error {
	_, err := os.Stat(out)
	if err == nil {
		return fmt.Errorf("%s: exists already: name another folder, or delete it", out)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// run is Run of a process that has the folder for itself.
func run(ctx context.Context, train, val data.Dataset, out string, opt Options) (*Report, error) {
	if err := vacant(out); err != nil { // another process has made it
		return nil, err
	}
	sets := map[string]data.Dataset{"train": train}
	want := &Report{Options: opt, Splits: []Split{{Name: "train", Images: train.Len()}}}
	if val != nil {
		sets["val"] = val
		want.Splits = append(want.Splits, Split{Name: "val", Images: val.Len()})
	}
	want.Source = fingerprint(train, val)
	work := partial(out)
	report, err := resume(work, want)
	if err != nil {
		return nil, err
	}
	p := &packer{dir: work, report: report, opt: opt}
	for i := range report.Splits {
		if err := p.split(ctx, &report.Splits[i], sets[report.Splits[i].Name]); err != nil {
			return nil, fmt.Errorf("pack: %w (finished work is kept in %s: the same command goes on)", err, work)
		}
	}
	if err := p.finish(train.Classes()); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return report, os.Rename(work, out)
}

func (o *Options) check() error {
	if o.ShardBytes == 0 {
		o.ShardBytes = DefaultShardBytes
	}
	switch {
	case o.Size < 8 || o.Size > 8192:
		return fmt.Errorf("pack: size %d: must be 8 to 8192", o.Size)
	case !o.Raw && (o.Quality < 1 || o.Quality > 100):
		return fmt.Errorf("pack: quality %d: must be 1 to 100", o.Quality)
	case o.ShardBytes < 0 || o.Workers < 0:
		return fmt.Errorf("pack: shards of %d bytes and %d workers: must not be negative", o.ShardBytes, o.Workers)
	}
	if o.Raw {
		o.Quality, o.Recode = 0, false
	}
	if o.Budget == nil {
		o.Budget = data.NewBudget(0, 1)
	}
	return nil
}

// fingerprint is a hash of the names, labels and classes of sets, of files' sizes and of a few images.
func fingerprint(sets ...data.Dataset) string {
	h := sha256.New()
	for _, ds := range sets {
		if ds == nil {
			continue
		}
		fmt.Fprintf(h, "%d %q %+v\n", ds.Len(), ds.Classes(), data.IdentityOf(ds))
		for i := range ds.Len() {
			fmt.Fprintf(h, "%d %s\n", ds.Label(i), ds.Name(i))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// resume returns the report of the finished part in the folder work, which it creates if needed.
func resume(work string, want *Report) (*Report, error) {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	got, err := ReadReport(work)
	if errors.Is(err, fs.ErrNotExist) {
		return want, nil
	}
	if err != nil {
		return nil, err
	}
	same := got.Source == want.Source && len(got.Splits) == len(want.Splits) && got.Options.Size == want.Options.Size &&
		got.Options.Quality == want.Options.Quality && got.Options.Raw == want.Options.Raw &&
		got.Options.Recode == want.Options.Recode && got.Options.ShardBytes == want.Options.ShardBytes
	if !same {
		return nil, fmt.Errorf("%s: was begun with other images or options, or by another version: delete it to begin again",
			work)
	}
	for _, split := range got.Splits {
		for _, shard := range split.Shards {
			path := filepath.Join(work, shard.File+unfinished)
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) { // stopped while finishing
				path = filepath.Join(work, shard.File)
				info, err = os.Stat(path)
			}
			if err != nil {
				return nil, fmt.Errorf("%w: delete %s to begin again", err, work)
			}
			if info.Size() != shard.Bytes {
				return nil, fmt.Errorf("%s: has %d bytes, not %d: delete %s to begin again", path, info.Size(),
					shard.Bytes, work)
			}
		}
	}
	got.Options = want.Options
	return got, nil
}

// finish completes the set.
func (p *packer) finish(classes []string) error {
	var sums strings.Builder
	for _, split := range p.report.Splits {
		for _, shard := range split.Shards {
			fmt.Fprintf(&sums, "%s  %s\n", shard.SHA256, shard.File)
			for _, name := range []string{shard.File, indexOf(shard.File)} {
				from := filepath.Join(p.dir, name+unfinished)
				if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
					continue // raw files have no index; or it was renamed before a stop
				}
				if err := os.Rename(from, filepath.Join(p.dir, name)); err != nil {
					return err
				}
			}
		}
	}
	if err := writeFile(filepath.Join(p.dir, sumsFile), []byte(sums.String())); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(p.dir, classesFile), []byte(strings.Join(classes, "\n")+"\n")); err != nil {
		return err
	}
	p.report.Complete = true
	return p.report.write(p.dir)
}
