package format

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// openFlat opens a folder of ImageNet's validation images without class folders. Their labels are in Kaggle's file
// or in ImageNet's devkit, beside the images or up to four folders above.
func openFlat(root string, entries []fs.DirEntry, classes []string) (Set, error) {
	d := &folder{root: root}
	passed := skippedImages{}
	for _, e := range entries {
		switch ext := strings.ToLower(filepath.Ext(e.Name())); {
		case strings.HasPrefix(e.Name(), "."):
		case slices.Contains(imageExtensions, ext):
			d.files.add(e.Name())
		case slices.Contains(otherExtensions, ext):
			passed[ext]++
		}
	}
	if d.files.len() == 0 {
		return nil, fmt.Errorf("%s: no class folders found: want %s", root, filepath.Join(root, "<class>", "*.jpg"))
	}
	passed.note(&d.notes, root)
	byName, source, err := flatLabels(root)
	if err != nil {
		return nil, err
	}
	if byName == nil {
		return nil, fmt.Errorf("%s: images without class folders: want %s, or their labels beside it or above: "+
			"Kaggle's %s, or ImageNet's %s",
			root, filepath.Join(root, "<class>", "*.jpg"), KaggleSolution, devkitArchive)
	}
	found := make([]string, d.files.len())
	for i := range found {
		name := d.files.at(i)
		wnid, ok := byName[strings.TrimSuffix(name, filepath.Ext(name))]
		if !ok {
			return nil, fmt.Errorf("%s: %s has no label for it", filepath.Join(root, name), source)
		}
		found[i] = wnid
	}
	d.classes, d.labels, err = label(found, classes, &d.notes)
	if err != nil {
		return nil, fmt.Errorf("%s: labels of %s: %w", root, source, err)
	}
	return d, nil
}

// label translates the class of each image to an index into classes; nil makes the sorted names found the classes.
func label(found, classes []string, n *notes) ([]string, []int32, error) {
	distinct := slices.Compact(slices.Sorted(slices.Values(found)))
	if classes == nil {
		classes = distinct
	}
	to, note, err := match(distinct, classes)
	if err != nil {
		return nil, nil, err
	}
	if note != "" {
		n.note("%s", note)
	}
	labels := make([]int32, len(found))
	for i, name := range found {
		k, _ := slices.BinarySearch(distinct, name)
		labels[i] = to[k]
	}
	return classes, labels, nil
}

// flatLabels finds the labels of ImageNet's validation images near the folder root, by name without extension, and
// their source; nil if there are none.
func flatLabels(root string) (byName map[string]string, source string, err error) {
	dir := filepath.Clean(root)
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	for range 5 {
		here := &listing{path: dir}
		if source = here.file(KaggleSolution); source != "" {
			byName, err = readSolution(source)
			return byName, source, err
		}
		if source = findDevkit(here); source != "" {
			wnids, err := readDevkit(source)
			if err != nil {
				return nil, "", err
			}
			byName = make(map[string]string, len(wnids))
			for i, wnid := range wnids {
				byName[fmt.Sprintf("ILSVRC2012_val_%08d", i+1)] = wnid
			}
			return byName, source, nil
		}
		dir = filepath.Dir(dir)
	}
	return nil, "", nil
}
