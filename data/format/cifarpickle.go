package format

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"onlinerna/internal/files"
	"onlinerna/internal/pickle"
)

// maxPickle bounds the size of a pickle, which is read into memory.
const maxPickle = 1 << 30

// arrays are the functions with which numpy's arrays of bytes are pickled. An array itself is an object whose state
// has its parts.
var arrays = map[pickle.Global]pickle.Function{"numpy.dtype": pickle.First}

// isArray names the function that makes an empty array for the state, before numpy 2 and since.
var isArray = map[pickle.Global]bool{
	"numpy.core.multiarray._reconstruct": true, "numpy._core.multiarray._reconstruct": true,
}

// readPickle reads the dict of a pickle.
func readPickle(path string) (*pickle.Dict, error) {
	f, size, err := files.OpenSized(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxPickle {
		return nil, fmt.Errorf("a pickle of %d bytes, %d at most", size, maxPickle)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	m := &pickle.Machine{In: b, Functions: arrays, RawStrings: true}
	v, err := m.Run()
	if err != nil {
		return nil, err
	}
	d, ok := v.(*pickle.Dict)
	if !ok {
		return nil, fmt.Errorf("%s in place of a dict", pickle.Kind(v))
	}
	return d, nil
}

// pickledNames are the names of the classes, a list under a key. An error of a missing file is an fs.ErrNotExist.
func pickledNames(path, key string) ([]string, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	d, err := readPickle(path)
	if err != nil {
		return nil, err
	}
	list, ok := d.Lookup(key).(*pickle.List)
	if !ok {
		return nil, fmt.Errorf("%s is under the key %s, where a list of names was expected",
			pickle.Kind(d.Lookup(key)), key)
	}
	var names []string
	for _, v := range list.Items {
		name, ok := pickle.Text(v)
		if !ok {
			return nil, fmt.Errorf("%s in place of the name of a class", pickle.Kind(v))
		}
		names = append(names, name)
	}
	return names, nil
}

// addPython adds the images of a pickled dict: rows of an array of bytes, and their labels.
func (d *cifar) addPython(form cifarForm, file *shardFile) error {
	top, err := readPickle(file.path)
	if err != nil {
		return err
	}
	labels, ok := top.Lookup(form.key).(*pickle.List)
	if !ok {
		return fmt.Errorf("%s is under the key %s, where a list of labels was expected",
			pickle.Kind(top.Lookup(form.key)), form.key)
	}
	rows, pix, turned, err := imageArray(top.Lookup("data"))
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	if rows != len(labels.Items) {
		return fmt.Errorf("%d images and %d labels", rows, len(labels.Items))
	}
	from := int64(pix.At)
	if turned {
		d.turned[file], from = turn(pix.Data, rows), 0
	}
	for k, v := range labels.Items {
		label, ok := v.(int64)
		if !ok || label < 0 || label > math.MaxInt32 {
			return fmt.Errorf("label %d is %s, no class", k, pickle.Shown(v))
		}
		d.add(strconv.Itoa(k), from+int64(k)*cifarImage, cifarImage, int32(label))
	}
	return nil
}

// imageArray is an array of rows of images: its bytes, and whether they are stored column by column.
func imageArray(v any) (rows int, pix pickle.Bytes, turned bool, err error) {
	fail := func(err error) (int, pickle.Bytes, bool, error) { return 0, pickle.Bytes{}, false, err }
	o, ok := v.(*pickle.Object)
	if !ok || !isArray[o.Class] {
		return fail(fmt.Errorf("%s in place of a numpy array", pickle.Kind(v)))
	}
	state, ok := o.State.(pickle.Tuple) // version, shape, type, column by column, bytes
	if !ok || len(state) != 5 {
		return fail(errors.New("an array in another form than numpy's"))
	}
	shape, ok := state[1].(pickle.Tuple)
	if !ok || len(shape) != 2 || shape[1] != any(int64(cifarImage)) {
		return fail(fmt.Errorf("an array of another shape than N×%d", cifarImage))
	}
	if kind, _ := pickle.Text(state[2]); kind != "u1" && kind != "|u1" {
		return fail(fmt.Errorf("elements of type %.20q, not of bytes", kind))
	}
	n, ok := shape[0].(int64)
	turned, ok2 := state[3].(bool)
	pix, ok3 := state[4].(pickle.Bytes)
	if !ok || !ok2 || !ok3 || n < 1 || n != int64(len(pix.Data))/cifarImage || len(pix.Data)%cifarImage != 0 {
		return fail(fmt.Errorf("%d bytes for %s images of %d", len(pix.Data), pickle.Shown(shape[0]), cifarImage))
	}
	return int(n), pix, turned, nil
}

// turn transposes column-major images to row-major ones.
func turn(columns []byte, rows int) []byte {
	out := slices.Clone(columns)
	for i := range rows {
		for j := range cifarImage {
			out[i*cifarImage+j] = columns[j*rows+i]
		}
	}
	return out
}
