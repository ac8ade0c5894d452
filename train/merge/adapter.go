package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// An adapter folder's files, named as in peft.
const (
	adapterWeights = "adapter_model.safetensors"
	adapterConfig  = "adapter_config.json"
)

// adapter is a LoRA adapter: it changes a tensor by s B A, with A of shape [r in] and B of [out r].
type adapter struct {
	file   *statedict.File
	config map[string]any
	scale  float64 // s = α/r, or α/√r
	rank   int
}

// MergeAdapters writes the folder of an adapter that changes the weights by Σ w_k s_k B_k A_k, the weighted changes of
// the adapters in the folders. It concatenates their factors, A_k unchanged and B_k times w_k s_k, rounded once; its
// rank is the sum of their ranks, its scale 1. Averaging A and B separately would give another product.
func MergeAdapters(folders []string, weights []float64, out string) (err error) {
	if len(weights) != len(folders) {
		return fmt.Errorf("%d weights for %d adapters", len(weights), len(folders))
	}
	o := Output{Path: out}
	if err := o.Check(); err != nil {
		return err
	}
	if !IsFolder(out) {
		return fmt.Errorf("%s: an adapter is a folder, with its configuration", out)
	}
	var list []*adapter
	defer func() {
		for _, a := range list {
			err = errors.Join(err, a.file.Close())
		}
	}()
	rank := 0
	for _, folder := range folders {
		a, err := openAdapter(folder)
		if err != nil {
			return err
		}
		list = append(list, a)
		rank += a.rank
		for i, other := range list[:len(list)-1] {
			if a.file.Same(other.file) {
				return fmt.Errorf("%s is given twice: %s is the same", folder, folders[i])
			}
		}
		if len(a.file.Tensors) != len(list[0].file.Tensors) {
			return fmt.Errorf("%s has %d tensors, %s has %d: adapters of other layers", folder, len(a.file.Tensors), folders[0],
				len(list[0].file.Tensors))
		}
	}
	if out, err = resolve(out); err != nil {
		return err
	}
	if err := files.MkdirAll(filepath.Dir(out)); err != nil {
		return err
	}
	dir, unlock, err := files.Beside(out, "merge")
	if err != nil {
		return err
	}
	defer unlock()
	if err := files.RemoveAll(dir); err != nil { // of a killed merge
		return err
	}
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.RemoveAll(dir)) }()
	if err := likeOut(dir, out); err != nil {
		return err
	}
	if err := writeFactors(list, weights, rank, filepath.Join(dir, adapterWeights)); err != nil {
		return err
	}
	config := maps.Clone(list[len(list)-1].config)
	config["r"], config["lora_alpha"], config["use_rslora"] = rank, rank, false
	b, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	if err := files.Write(filepath.Join(dir, adapterConfig), append(b, '\n')); err != nil {
		return err
	}
	if err := files.RenameFolder(dir, out); err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(out))
}

func openAdapter(folder string) (*adapter, error) {
	path := filepath.Join(folder, adapterConfig)
	fd, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: an adapter is a folder with %s and %s", err, adapterConfig, adapterWeights)
	}
	defer fd.Close()
	b, err := io.ReadAll(io.LimitReader(fd, 1<<20))
	if err != nil {
		return nil, err
	}
	a := &adapter{}
	if err := json.Unmarshal(b, &a.config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range []string{"rank_pattern", "alpha_pattern"} {
		if m, _ := a.config[name].(map[string]any); len(m) > 0 {
			return nil, fmt.Errorf("%s: %s: adapters of one rank and one scale are merged", path, name)
		}
	}
	for _, name := range []string{"use_dora", "fan_in_fan_out"} {
		if a.config[name] == true {
			return nil, fmt.Errorf("%s: %s: plain LoRA is merged", path, name)
		}
	}
	if bias, ok := a.config["bias"].(string); ok && bias != "none" {
		return nil, fmt.Errorf("%s: bias %q: adapters without biases are merged", path, bias)
	}
	r, ok := a.config["r"].(float64)
	alpha, ok2 := a.config["lora_alpha"].(float64)
	if a.rank = int(r); !ok || !ok2 || r < 1 || r > 1<<16 || r != math.Trunc(r) {
		return nil, fmt.Errorf("%s: r %v and lora_alpha %v: want numbers", path, a.config["r"], a.config["lora_alpha"])
	}
	if a.scale = alpha / r; a.config["use_rslora"] == true {
		a.scale = alpha / math.Sqrt(r)
	}
	if a.file, err = statedict.Open(filepath.Join(folder, adapterWeights), ""); err != nil {
		return nil, err
	}
	for _, t := range a.file.Tensors {
		side, err := factorOf(t)
		if err == nil && t.Shape[side] != a.rank {
			err = fmt.Errorf("tensor %q of shape %v in an adapter of rank %d", t.Name, t.Shape, a.rank)
		}
		if err != nil {
			a.file.Close()
			return nil, fmt.Errorf("%s: %w", a.file.Path, err)
		}
	}
	return a, nil
}

// factorOf is the dimension of the rank: 0 for A, 1 for B.
func factorOf(t statedict.Tensor) (int, error) {
	for side, name := range []string{".lora_A.", ".lora_B."} {
		if strings.Contains(t.Name, name) && len(t.Shape) == 2 && t.DType.Float() {
			return side, nil
		}
	}
	return 0, fmt.Errorf("tensor %q %s%v is not LoRA's A or B of a linear layer", t.Name, t.DType, t.Shape)
}

// writeFactors concatenates the factors.
func writeFactors(list []*adapter, weights []float64, rank int, path string) error {
	last := list[len(list)-1].file
	var tensors []statedict.Tensor
	for _, t := range last.Tensors {
		side, _ := factorOf(t)
		whole := t
		whole.Shape = slices.Clone(t.Shape)
		whole.Shape[side] = rank
		for _, a := range list {
			own, ok := a.file.Lookup(t.Name)
			if !ok || own.DType != t.DType || own.Shape[1-side] != t.Shape[1-side] {
				return fmt.Errorf("%s has %s %s%v, %s has %s%v", last.Path, t.Name, t.DType, t.Shape, a.file.Path, own.DType,
					own.Shape)
			}
		}
		tensors = append(tensors, whole)
	}
	w, err := statedict.Create(path, tensors, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, t := range tensors {
		side, _ := factorOf(t)
		size, at := t.DType.Size(), 0
		for k, a := range list {
			own, _ := a.file.Lookup(t.Name)
			v, b := make([]float64, own.Len()), make([]byte, own.Len()*size)
			if err := a.file.Float64s(own, v); err != nil {
				return err
			}
			if side == 1 {
				for i := range v {
					v[i] *= weights[k] * a.scale
				}
			}
			if bad, err := safetensors.Encode(b, v, t.DType); err != nil || bad >= 0 {
				return errors.Join(err, fmt.Errorf("tensor %q: a number that %s cannot hold", t.Name, t.DType))
			}
			rows, row := 1, len(b)
			if side == 1 {
				rows, row = own.Shape[0], own.Shape[1]*size
			}
			for i := range rows {
				off := at
				if side == 1 {
					off = i*rank*size + at
				}
				if err := w.WriteAt(t.Name, b[i*row:(i+1)*row], int64(off)); err != nil {
					return err
				}
			}
			at += row
		}
		if at == 0 {
			return fmt.Errorf("tensor %q is empty", t.Name)
		}
	}
	for _, a := range list {
		if err := a.file.Unchanged(); err != nil {
			return err
		}
	}
	return w.Commit()
}
