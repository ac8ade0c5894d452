// Package store keeps a run's checkpoints in a folder: each is a numbered folder, which appears complete or not at all,
// with a manifest of all its files and their checksums. It keeps several of the newest ones in case one is damaged.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/checksum"
	"onlinerna/internal/files"
)

// A Manifest describes a checkpoint.
type Manifest struct {
	Sum     string `json:"crc32c"` // of the manifest, computed with zeros in this place
	Version int    `json:"version"`
	Program string `json:"program"` // the writing program
	Epoch   int    `json:"epoch"`   // in progress, counted from 1
	Batch   int    `json:"batch"`   // its completed batches
	Step    int    `json:"step"`    // optimiser steps since the start
	Files   []Part `json:"files"`   // by name
}

// Part is a file of a checkpoint.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Sums  string `json:"crc32c"` // of its blocks
}

const (
	version      = 1
	manifestName = "manifest.json"
	unfinished   = ".new"
	damaged      = ".damaged"
)

var (
	numbered = regexp.MustCompile(`^[0-9]{6,}$`)
	draft    = regexp.MustCompile(`^[0-9]{6,}(-[0-9a-f]{8})?\.new$`) // older programs' names have no random part
)

// List lists the checkpoints' folders, newest first. It is empty if root does not exist.
func List(root string) ([]string, error) {
	all, err := os.ReadDir(root)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var numbers []int
	for _, e := range all {
		if !e.IsDir() || !numbered.MatchString(e.Name()) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(root, e.Name(), manifestName)); err != nil { // half removed
			continue
		}
		if n, err := strconv.Atoi(e.Name()); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	var list []string
	for _, n := range numbers {
		list = append(list, filepath.Join(root, name(n)))
	}
	return list, nil
}

// Unlisted lists the manifests that are missing in checkpoints, except in those that have enough newer ones: they may be
// half removed.
func Unlisted(root string, keep int) ([]string, error) {
	whole, err := List(root)
	if err != nil {
		return nil, err
	}
	all, err := os.ReadDir(root)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var list []string
	for _, e := range all {
		path := filepath.Join(root, e.Name())
		manifest := filepath.Join(path, manifestName)
		if _, err := os.Lstat(manifest); !e.IsDir() || !numbered.MatchString(e.Name()) || !os.IsNotExist(err) {
			continue
		}
		newer := 0
		for _, dir := range whole {
			if a, b := filepath.Base(dir), e.Name(); len(a) > len(b) || len(a) == len(b) && a > b {
				newer++
			}
		}
		if newer < max(1, keep) {
			list = append(list, manifest)
		}
	}
	return list, nil
}

func name(n int) string { return fmt.Sprintf("%06d", n) }

// A Draft is a checkpoint being written, by one process or by several.
type Draft struct {
	root, dir string
	tmp       string
	m         Manifest
}

// Begin starts a new checkpoint in an empty folder, [Draft.Dir]. m describes the run's position. Only one draft at a time
// and [Acquire] may write to root.
func Begin(root string, m Manifest) (*Draft, error) {
	if err := files.MkdirAll(root); err != nil {
		return nil, err
	}
	if err := clean(root); err != nil {
		return nil, err
	}
	next := 1
	all, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	for _, e := range all { // damaged ones, too
		if n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), damaged)); err == nil {
			next = max(next, n+1)
		}
	}
	d := &Draft{root: root, dir: filepath.Join(root, name(next)), m: m}
	d.tmp = fmt.Sprintf("%s-%08x%s", d.dir, rand.Uint32(), unfinished) // processes of a killed run do not know it
	if err := files.Mkdir(d.tmp); err != nil {
		return nil, err
	}
	return d, nil
}

// Join is a draft that another process has begun, by the name of its folder in root.
func Join(root, name string) *Draft { return &Draft{root: root, tmp: filepath.Join(root, name)} }

// Name is the name of the draft's folder.
func (d *Draft) Name() string { return filepath.Base(d.tmp) }

// Fill writes files to the draft's folder, which need not be synced.
func (d *Draft) Fill(fill func(dir string) error) error {
	defer files.SyncLater(d.tmp)()
	return fill(d.tmp)
}

// Abandon removes the draft.
func (d *Draft) Abandon() { files.RemoveAll(d.tmp) }

// Sync brings files of the draft to disk, those that own accepts, and computes their checksums. It omits files that the
// system adds.
func (d *Draft) Sync(own func(name string) bool) ([]Part, error) {
	all, err := os.ReadDir(d.tmp)
	if err != nil {
		return nil, err
	}
	var list []Part
	for _, e := range all {
		if foreign(e.Name()) || !own(e.Name()) {
			continue
		}
		p, err := part(d.tmp, e.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, files.SyncDir(d.tmp)
}

// part syncs a file and computes its checksums.
func part(dir, name string) (Part, error) {
	p, path := Part{Name: name}, filepath.Join(dir, name)
	if err := files.SyncFile(path); err != nil {
		return p, err
	}
	f, size, err := files.OpenSized(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	p.Bytes = size
	p.Sums, err = checksum.Blocks(f, 0, size)
	return p, err
}

// Finish makes the draft a checkpoint: it syncs all files but the given parts, which are on the disk, calls done if it is
// not nil, and removes all but the keep newest checkpoints.
func (d *Draft) Finish(parts []Part, keep int, done func(dir string) error) (string, error) {
	rest, err := d.Sync(func(name string) bool {
		return !slices.ContainsFunc(parts, func(p Part) bool { return p.Name == name })
	})
	if err == nil {
		err = seal(d.tmp, d.m, append(rest, parts...))
	}
	if err == nil {
		err = files.Rename(d.tmp, d.dir)
	}
	if err != nil {
		d.Abandon()
		return "", err
	}
	if err := files.SyncDir(d.root); err != nil {
		return "", err
	}
	if done != nil {
		if err := done(d.dir); err != nil {
			return "", err
		}
	}
	list, err := List(d.root)
	if err != nil {
		return "", err
	}
	for _, old := range list[min(keep, len(list)):] {
		if err := remove(old); err != nil {
			return "", err
		}
	}
	return d.dir, nil
}

// Write writes a checkpoint.
func Write(root string, keep int, m Manifest, fill, done func(dir string) error) (string, error) {
	d, err := Begin(root, m)
	if err != nil {
		return "", err
	}
	if err := d.Fill(fill); err != nil {
		d.Abandon()
		return "", err
	}
	return d.Finish(nil, keep, done)
}

// remove removes a checkpoint, its manifest first: a folder without one is no checkpoint.
func remove(dir string) error {
	if err := files.Remove(filepath.Join(dir, manifestName)); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := files.SyncDir(dir); err != nil && !os.IsNotExist(err) { // before removing the rest
		return err
	}
	return files.RemoveAll(dir)
}

// Remove removes all checkpoints.
func Remove(root string) error {
	list, err := List(root)
	errs := []error{err}
	for _, dir := range list {
		errs = append(errs, remove(dir))
	}
	return errors.Join(append(errs, clean(root))...)
}

// clean removes the leftovers of killed writers.
func clean(root string) error {
	all, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range all {
		path := filepath.Join(root, e.Name())
		_, missing := os.Lstat(filepath.Join(path, manifestName))
		half := numbered.MatchString(e.Name()) && os.IsNotExist(missing)
		if half || draft.MatchString(e.Name()) {
			if err := files.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// seal writes the manifest of a folder with the given files.
func seal(dir string, m Manifest, parts []Part) error {
	m.Sum, m.Version, m.Program, m.Files = checksum.Zeros, version, program(), parts
	slices.SortFunc(parts, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	checksum.Seal(sumPlace(b), b)
	return files.Write(filepath.Join(dir, manifestName), b) // syncs the folder, too
}

// sumPlace is the position of the manifest's own checksum, its first value.
func sumPlace(b []byte) int {
	const before = "{\n  \"crc32c\": \""
	if !strings.HasPrefix(string(b), before) {
		return -1
	}
	return len(before)
}

// program is the running program's version.
func program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	s := strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
	for _, set := range info.Settings {
		if set.Key == "vcs.revision" {
			s += " " + set.Value
		}
	}
	return s
}

// Read reads a checkpoint's manifest. It does not check the files.
func Read(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestName)
	b, err := files.Read(path)
	if err != nil {
		return nil, err
	}
	if !checksum.Sealed(sumPlace(b), b) {
		return nil, fmt.Errorf("%s is damaged: its checksum differs", path)
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Version != version {
		return nil, fmt.Errorf("%s: version %d, this program reads %d", path, m.Version, version)
	}
	return m, nil
}

// foreign reports whether a file of that name is one that systems add to folders, as .DS_Store, ._a, .nfs01 and Thumbs.db.
func foreign(name string) bool {
	return strings.HasPrefix(name, ".") || strings.EqualFold(name, "Thumbs.db") || strings.EqualFold(name, "desktop.ini")
}

// Verify reads a whole checkpoint and compares it with its manifest. The error names the file and the bytes. Files that
// the system has added do not count.
func Verify(dir string) (*Manifest, error) {
	m, err := Read(dir)
	if err != nil {
		return nil, err
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range m.Files {
		errs = append(errs, p.verify(dir))
	}
	for _, e := range all {
		if e.Name() != manifestName && !foreign(e.Name()) &&
			!slices.ContainsFunc(m.Files, func(p Part) bool { return p.Name == e.Name() }) {
			errs = append(errs, fmt.Errorf("%s is no part of the checkpoint", filepath.Join(dir, e.Name())))
		}
	}
	return m, errors.Join(errs...)
}

// VerifyFile verifies the manifest and one file.
func VerifyFile(dir, name string) error {
	m, err := Read(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.Files, func(p Part) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("%s is no part of the checkpoint", filepath.Join(dir, name))
	}
	return m.Files[i].verify(dir)
}

func (p Part) verify(dir string) error {
	path := filepath.Join(dir, p.Name)
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && st.Size() != p.Bytes {
		err = fmt.Errorf("damaged: %d bytes in place of %d", st.Size(), p.Bytes)
	}
	if err == nil {
		err = checksum.Check(f, 0, p.Bytes, p.Sums)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Newest is the newest complete checkpoint.
type Newest struct {
	Dir string
	Manifest
	Damaged []Damaged // damaged checkpoints newer than it
}

// Damaged is a checkpoint that differs from its manifest.
type Damaged struct {
	Dir string
	Err error
}

// Find finds the newest complete checkpoint.
func Find(root string) (Newest, error) {
	var n Newest
	list, err := List(root)
	if err != nil {
		return n, err
	}
	var errs []error
	for _, dir := range list {
		m, err := Verify(dir)
		if err == nil {
			n.Dir, n.Manifest = dir, *m
			return n, nil
		}
		n.Damaged = append(n.Damaged, Damaged{dir, err})
		errs = append(errs, err)
	}
	if len(list) == 0 {
		return n, fmt.Errorf("%s: no checkpoint", root)
	}
	return n, errors.Join(errs...)
}

// SetAside renames a damaged checkpoint, so that it no longer counts.
func (d Damaged) SetAside() (string, error) {
	to := d.Dir + damaged
	if err := files.RemoveAll(to); err != nil {
		return "", err
	}
	return to, files.Rename(d.Dir, to)
}
