// Package powercut replays changes of files on a disk that loses power, and makes the folders that may then be found.
// Synced data is kept. Any of the other changes may be kept, but those of one name keep their order.
package powercut

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/internal/files"
)

// A Disk records changes below a folder, which begins empty.
type Disk struct {
	root    string
	changes []files.Change
	marks   map[int]int // by the number of changes before them
}

// Record begins to record the changes below a folder that package files makes. Stop ends it.
func Record(root string) *Disk {
	d := &Disk{root: root, marks: map[int]int{}}
	files.Trace = func(c files.Change) {
		if d.below(c.Path) {
			d.changes = append(d.changes, c)
		}
	}
	return d
}

func (d *Disk) below(path string) bool {
	return path == d.root || strings.HasPrefix(path, d.root+string(filepath.Separator))
}

// Mark notes that from here on a state must be at least n.
func (d *Disk) Mark(n int) { d.marks[len(d.changes)] = n }

// Stop ends the recording.
func (d *Disk) Stop() { files.Trace = nil }

// node is a file or a folder of the simulated disk.
type node struct {
	data    []byte           // on the disk, of a file
	entries map[string]*node // on the disk, of a folder
}

// change is a change that is not on the disk yet: names in folders that get another node, nil for none. A rename makes
// two at once.
type change struct {
	in   []*node
	name []string
	to   []*node
}

// disk is the state of a simulation.
type disk struct {
	now     map[string]*node // by path, as programs see it
	pending []change
}

func (d *disk) add(c files.Change) {
	at := func(path string) (*node, string) { return d.now[filepath.Dir(path)], filepath.Base(path) }
	switch c.What {
	case files.Created, files.Made:
		n := &node{}
		if c.What == files.Made {
			n.entries = map[string]*node{}
		}
		d.now[c.Path] = n
		in, name := at(c.Path)
		d.pending = append(d.pending, change{[]*node{in}, []string{name}, []*node{n}})
	case files.Filled:
		n := d.now[c.Path]
		if n.data = c.Data; !c.Synced {
			n.data = c.Data[:len(c.Data)/2]
		}
	case files.Removed:
		in, name := at(c.Path)
		d.pending = append(d.pending, change{[]*node{in}, []string{name}, []*node{nil}})
		delete(d.now, c.Path)
	case files.Renamed:
		from, old := at(c.Path)
		to, name := at(c.To)
		d.pending = append(d.pending, change{[]*node{from, to}, []string{old, name}, []*node{nil, d.now[c.Path]}})
		for path, n := range maps.Clone(d.now) {
			if path == c.Path || strings.HasPrefix(path, c.Path+string(filepath.Separator)) {
				delete(d.now, path)
				d.now[c.To+path[len(c.Path):]] = n
			}
		}
	case files.Synced:
		n := d.now[c.Path]
		var rest []change
		for _, p := range d.pending {
			if p.in[0] == n || p.in[len(p.in)-1] == n {
				p.apply()
			} else {
				rest = append(rest, p)
			}
		}
		d.pending = rest
	}
}

func (c change) apply() {
	for i, in := range c.in {
		if c.to[i] == nil {
			delete(in.entries, c.name[i])
		} else {
			in.entries[c.name[i]] = c.to[i]
		}
	}
}

// States calls f for each point at which power may fail, with folders that may then be found, up to the given number
// for each point, and with the last mark before it, 0 for none. A folder exists only during the call.
func (d *Disk) States(most int, r *rand.Rand, f func(dir, when string, mark int) error) error {
	mark := 0
	for n := range len(d.changes) + 1 {
		if m, ok := d.marks[n]; ok {
			mark = m
		}
		kept := map[string]bool{}
		for k := range most {
			s := d.replay(n)
			which := ""
			for range s.pending { // none, all, then some
				which += string("01"[[]int{0, 1, r.IntN(2)}[min(k, 2)]])
			}
			if kept[which] {
				continue
			}
			kept[which] = true
			for i, p := range s.pending {
				if which[i] == '1' {
					p.apply()
				}
			}
			dir, err := os.MkdirTemp("", "powercut")
			if err != nil {
				return err
			}
			if err = s.now[d.root].write(dir); err == nil {
				err = f(dir, fmt.Sprintf("after %d of %d changes, of those not synced %s", n, len(d.changes), which),
					mark)
			}
			os.RemoveAll(dir)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Disk) replay(n int) *disk {
	s := &disk{now: map[string]*node{d.root: {entries: map[string]*node{}}}}
	for _, c := range d.changes[:n] {
		s.add(c)
	}
	return s
}

// write makes a folder with the content of the disk.
func (n *node) write(dir string) error {
	for name, e := range n.entries {
		path := filepath.Join(dir, name)
		if e.entries == nil {
			if err := os.WriteFile(path, e.data, 0o644); err != nil {
				return err
			}
			continue
		}
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		if err := e.write(path); err != nil {
			return err
		}
	}
	return nil
}
