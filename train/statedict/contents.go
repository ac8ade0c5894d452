package statedict

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Contents is the kind of a file's tensors.
type Contents int

const (
	// Weights are a net's weights, as far as names tell.
	Weights Contents = iota
	// Shard is a part of a checkpoint in several files.
	Shard
	// Factors are an adapter's factors, such as LoRA's A and B.
	Factors
	// OptimizerState is an optimiser's state, not weights.
	OptimizerState
)

// Holds is the metadata key of rna's files that hold no weights: the name of an optimiser's state.
const Holds = "holds"

var (
	stateName = regexp.MustCompile(`^(momentum|exp_avg|exp_avg_sq)\.safetensors$`)
	shardName = regexp.MustCompile(`-(\d+)-of-(\d+)\.\w+$`)
	factor    = regexp.MustCompile(`(^|[._])(lora_(A|B|up|down|embedding_A|embedding_B|magnitude_vector)|` +
		`(hada|lokr)_w\d.*)([._]|$)`)
	moment = regexp.MustCompile(`(^|\.)(exp_avg|exp_avg_sq|max_exp_avg_sq|exp_inf|square_avg|momentum_buffer)$`)
)

// Contents finds the kind of the tensors from the names of the file and of the tensors. If they are not weights, the
// text explains it, in words that follow the file's name.
func (f *File) Contents() (Contents, string) {
	if state := f.Metadata[Holds]; state != "" {
		return OptimizerState, fmt.Sprintf("holds the state of an optimiser, %s, not weights", state)
	}
	if dir, name := filepath.Split(f.Path); stateName.MatchString(name) { // in rna's checkpoints, also older ones
		if _, err := os.Stat(filepath.Join(dir, "state.json")); err == nil {
			return OptimizerState, "holds the state of an optimiser, not weights: weights.safetensors lies beside it"
		}
	}
	if m := slices.IndexFunc(f.Tensors, func(t Tensor) bool { return isMoment(t.Name) }); m >= 0 {
		return OptimizerState, fmt.Sprintf("holds the state of an optimiser, as %s, not weights", f.Tensors[m].Name)
	}
	if l := slices.IndexFunc(f.Tensors, func(t Tensor) bool { return factor.MatchString(t.Name) }); l >= 0 {
		return Factors, fmt.Sprintf("holds the factors of an adapter (LoRA), as %s: "+
			"a net has them only with the weights that they are added to, and combining "+
			"factors is not combining their products", f.Tensors[l].Name)
	}
	if index := kerasWhole(f.Path); index != "" {
		return Shard, fmt.Sprintf("is a shard of a checkpoint, a part of its tensors: name its index, %s", index)
	}
	if i, n := shardOf(f.Path); n > 1 {
		what := fmt.Sprintf("is shard %d of %d of a checkpoint: a part of its tensors", i, n)
		if list := f.Siblings(); len(list) > 0 {
			what += "; beside it are " + strings.Join(list[:min(len(list), 4)], ", ")
		}
		return Shard, what
	}
	return Weights, ""
}

// shardOf is a shard's number and the number of shards from its file name; 0, 0 for other files.
func shardOf(path string) (i, n int) {
	m := shardName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return 0, 0
	}
	i, _ = strconv.Atoi(m[1])
	n, _ = strconv.Atoi(m[2])
	return i, n
}

// sharded explains that the weights files of a folder are the shards of one checkpoint; empty if they are not.
func sharded(names []string) string {
	for _, name := range names {
		if _, n := shardOf(name); n > 1 {
			return fmt.Sprintf("it holds a checkpoint in %d shards, as %s, without their index, as model.safetensors.index.json",
				n, filepath.Base(name))
		}
	}
	return ""
}
