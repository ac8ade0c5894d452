package statedict

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"onlinerna/internal/ocdbt"
	"onlinerna/internal/text"
)

// orbaxState is the part of a name under which training states of Flax keep an optimiser's state.
var orbaxState = regexp.MustCompile(`(^|\.)opt(imizer)?_states?(\.|$)`)

// hasArrays reports whether a folder has OCDBT's root, Orbax's metadata, or an array of Zarr.
func hasArrays(dir string) bool {
	if isFile(filepath.Join(dir, ocdbt.ManifestName)) || isFile(filepath.Join(dir, "_METADATA")) {
		return true
	}
	all, _ := os.ReadDir(dir)
	return slices.ContainsFunc(all, func(e fs.DirEntry) bool {
		return isFile(filepath.Join(dir, e.Name(), ".zarray")) || isFile(filepath.Join(dir, e.Name(), "zarr.json"))
	})
}

// orbaxFolder is the folder of a checkpoint's arrays: the folder itself, or that of the one item in a step of Orbax's
// CheckpointManager. It is empty if the folder is not Orbax's.
func orbaxFolder(dir string) (string, error) {
	if hasArrays(dir) {
		return dir, nil
	}
	var items []string
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		if sub := filepath.Join(dir, e.Name()); e.IsDir() && !strings.HasPrefix(e.Name(), perProcess) && hasArrays(sub) {
			items = append(items, sub)
		}
	}
	switch {
	case len(items) == 1:
		return items[0], nil
	case len(items) > 1:
		return "", fmt.Errorf("%s holds several items of Orbax: name one: %s", dir, strings.Join(items, ", "))
	case isFile(filepath.Join(dir, "_CHECKPOINT_METADATA")):
		return "", fmt.Errorf("%s is a folder of Orbax without arrays: the checkpoint was not finished", dir)
	}
	return "", nil
}

// perProcess begins the names of folders with the database of one process.
const perProcess = "ocdbt.process_"

// openOrbax opens a checkpoint of Orbax: arrays of Zarr by name, in an OCDBT database or in folders. key is the first
// part of the names of the tensors that are read, such as "params"; the state of an optimiser is passed over.
func (f *File) openOrbax(dir, key string) error {
	f.Form = Orbax
	s := &zarrStore{file: f, dir: dir, values: map[string]ocdbt.Entry{}, opened: map[string]int{}}
	var err error
	if isFile(filepath.Join(dir, ocdbt.ManifestName)) {
		err = s.database()
	} else {
		err = s.folders()
	}
	if err != nil {
		return err
	}
	states := 0
	for _, name := range s.arrays {
		own := name
		if key != "" {
			rest, ok := strings.CutPrefix(name, key+".")
			if !ok {
				continue
			}
			own = rest
		}
		if isMoment(name) || orbaxState.MatchString(name) {
			states++
			continue
		}
		t, err := s.tensor(name)
		if err != nil {
			return fmt.Errorf("%s: tensor %q: %w", dir, name, err)
		}
		t.Name = own
		f.Tensors = append(f.Tensors, t)
	}
	switch {
	case len(f.Tensors) > 0:
		f.Key = key
		return s.later()
	case states == 0 && key != "":
		return fmt.Errorf("%s: there is no key %q: there are %q", dir, key, s.tops())
	}
	return fmt.Errorf("%s: %w", dir, noWeights(states, key))
}

// zarrStore has the values of a checkpoint by their keys, such as "params.w/.zarray" and "params.w/0.0".
type zarrStore struct {
	file   *File
	dir    string
	values map[string]ocdbt.Entry
	arrays []string // in order
	opened map[string]int
	chunks int
	jobs   []zarrJob
}

// zarrJob is a chunk that has to be decompressed.
type zarrJob struct {
	tensor, piece int
	value         ocdbt.Entry
	codec         string
	size          int64
}

// isZarr reports whether a file of this name describes an array.
func isZarr(name string) bool { return name == ".zarray" || name == "zarr.json" }

func (s *zarrStore) add(e ocdbt.Entry) error {
	if text.Printable(e.Key) != e.Key {
		return fmt.Errorf("%s: a value named %.100q", s.dir, e.Key)
	}
	s.values[e.Key] = e
	if isZarr(path.Base(e.Key)) && path.Dir(e.Key) != "." {
		s.arrays = append(s.arrays, path.Dir(e.Key))
	}
	return nil
}

// tops are the first parts of the names.
func (s *zarrStore) tops() []string {
	var list []string
	for _, name := range s.arrays {
		top, _, _ := strings.Cut(name, ".")
		list = append(list, top)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *zarrStore) database() error {
	if _, err := s.file.add(filepath.Join(s.dir, ocdbt.ManifestName)); err != nil { // small values are in its nodes
		return err
	}
	entries, err := ocdbt.Read(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.add(e); err != nil {
			return err
		}
	}
	return nil
}

// folders finds the files of arrays that each have a folder.
func (s *zarrStore) folders() error {
	all, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), perProcess) }) {
		return fmt.Errorf("%s has no %s, which is written last: the checkpoint was not finished", s.dir, ocdbt.ManifestName)
	}
	dir, err := filepath.EvalSymlinks(s.dir) // which WalkDir does not follow
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(name) // files may be links
		if errors.Is(err, fs.ErrNotExist) && !isZarr(filepath.Base(name)) {
			return nil // a link to nothing: if it is for a chunk, that is missing
		}
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if len(s.values) >= maxParts {
			return fmt.Errorf("%s: more than %d files", s.dir, maxParts)
		}
		rel, err := filepath.Rel(dir, name)
		if err == nil {
			err = s.add(ocdbt.Entry{Key: filepath.ToSlash(rel), File: rel, Len: info.Size()})
		}
		return err
	})
}

// number is the place of a value's file in the list of open files.
func (s *zarrStore) number(e ocdbt.Entry) (int, error) {
	n, ok := s.opened[e.File]
	if !ok {
		if _, err := s.file.add(filepath.Join(s.dir, filepath.FromSlash(e.File))); err != nil {
			return 0, err
		}
		n = len(s.file.infos) - 1
		s.opened[e.File] = n
	}
	size := s.file.infos[n].Size()
	if e.Len > size || e.Off > size-e.Len {
		return 0, fmt.Errorf("%s of %d bytes ends before the value of %s: it was cut short", s.file.files[n].Name(), size,
			e.Key)
	}
	return n, nil
}

// reader reads a value.
func (s *zarrStore) reader(e ocdbt.Entry) (io.ReaderAt, error) {
	if e.File == "" {
		return strings.NewReader(string(e.Inline)), nil
	}
	n, err := s.number(e)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(s.file.files[n], e.Off, e.Len), nil
}

// bytes reads a whole value of at most max bytes.
func (s *zarrStore) bytes(e ocdbt.Entry, max int64) ([]byte, error) {
	if e.Len > max {
		return nil, fmt.Errorf("%s has %d bytes: at most %d are read", e.Key, e.Len, max)
	}
	r, err := s.reader(e)
	if err != nil {
		return nil, err
	}
	b := make([]byte, e.Len)
	_, err = io.ReadFull(io.NewSectionReader(r, 0, e.Len), b)
	return b, err
}
