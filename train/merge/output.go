package merge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train/extrapolate"
	"onlinerna/train/ranks"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Output is a merge's destination.
type Output struct {
	// Path is a file, .safetensors, .pt or .pth, or a folder: safetensors shards with their index, as in Hugging Face's
	// libraries.
	Path string

	// ShardSize is the largest number of tensor bytes in a shard; a larger tensor has its own shard.
	ShardSize int64

	// Ranks write shards in turn, or each its tensors of one file, on a disk that all of them see; nil for a single
	// process.
	Ranks *ranks.Group

	// Resume continues a stopped merge of the same files with the same options from its finished shards.
	Resume bool

	extrapolate.WriteOptions
}

// DefaultShardSize was long the default of Hugging Face's libraries: 5 GB.
const DefaultShardSize = 5e9

// IsFolder reports whether a path means a folder of shards.
func IsFolder(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".safetensors", ".pt", ".pth":
		return false
	}
	return true
}

// Written describes the output.
type Written struct {
	Shards  int
	Resumed int      // number of shards reused from a stopped merge
	Copied  []string // other files of the model
}

// Check returns an error for an output that cannot be written, before anything is read.
func (o *Output) Check() error {
	if !IsFolder(o.Path) {
		if o.Resume {
			return fmt.Errorf("%s is one file: shards are resumed, name a folder", o.Path)
		}
		return nil
	}
	if ext := filepath.Ext(o.Path); ext == ".gguf" || ext == ".npz" || ext == ".bin" || ext == ".onnx" {
		return fmt.Errorf("%s: written are .safetensors, .pt, .pth and folders of shards", o.Path)
	}
	out, err := resolve(o.Path)
	if err != nil {
		return err
	}
	return replaceable(out, o.Resume)
}

// resolve follows the links of a folder's path: the hidden folder beside the result is on its disk.
func resolve(path string) (string, error) {
	out, err := filepath.EvalSymlinks(path)
	if !os.IsNotExist(err) {
		return out, err
	}
	if link, _ := os.Readlink(path); link != "" {
		return "", fmt.Errorf("%s is a link to %s, which is not there: make that folder, or name another", path, link)
	}
	return filepath.Clean(path), nil
}

// replaceable returns an error unless a folder can be renamed to out, which must be missing or an empty folder, or, to
// resume, one that still has its plan. It changes nothing.
func replaceable(out string, resume bool) error {
	all, err := os.ReadDir(out)
	planned := files.IsRegular(filepath.Join(out, planName))
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return err
	case planned && resume:
		return nil
	case planned:
		return fmt.Errorf("%s is there and not empty: remove it, or name another folder, or, if a merge to it was killed, "+
			"--resume", out)
	case len(all) > 0:
		return fmt.Errorf("%s is there and not empty: remove it, or name another folder", out)
	case files.Same(out, "."):
		return fmt.Errorf("%s is the current folder, which cannot be replaced: name a new folder in it", out)
	case files.IsMount(out):
		return fmt.Errorf("%s is a mount point, which cannot be replaced: name a new folder, as %s", out,
			filepath.Join(out, "merged"))
	}
	return nil
}

// likeOut gives the hidden folder the permissions of a folder that it will replace; its owner can always write.
func likeOut(dir, out string) error {
	st, err := os.Stat(out)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	const bits = os.ModePerm | os.ModeSetuid | os.ModeSetgid | os.ModeSticky
	return os.Chmod(dir, st.Mode()&bits|0o700)
}

// Write combines a series by rules and writes the output, which appears complete or not at all. For a folder, finished
// shards stay in a hidden folder beside it until all are there.
func Write(ctx context.Context, s *extrapolate.Series, rules extrapolate.Rules, o Output) (*Written, error) {
	if err := o.Ranks.Together(o.Check()); err != nil {
		return nil, err
	}
	if !IsFolder(o.Path) {
		return &Written{Shards: 1}, writeFile(ctx, s, rules, o)
	}
	return writeFolder(ctx, s, rules, o)
}

const (
	planName  = "merge.json"
	wholeName = "model.safetensors"
	indexName = "model.safetensors.index.json"
)

func writeFolder(ctx context.Context, s *extrapolate.Series, rules extrapolate.Rules, o Output) (*Written, error) {
	if o.ShardSize < 0 {
		return nil, fmt.Errorf("shards of %d bytes", o.ShardSize)
	}
	shards := cut(s.Tensors(), o.ShardSize)
	out, err := resolve(o.Path)
	if err := o.Ranks.Together(err); err != nil {
		return nil, err
	}
	dir, w := files.Hidden(out, "merge"), &Written{Shards: len(shards)}
	complete := false
	if o.Ranks.First() {
		var unlock func()
		complete, unlock, err = prepare(out, planOf(s, shards, o), o.Resume)
		if err == nil {
			defer unlock()
		}
	}
	if err := o.Ranks.Together(err); err != nil {
		return nil, err
	}
	if complete, err = o.Ranks.Any(complete); err != nil {
		return nil, err
	}
	if complete {
		if w.Resumed = len(shards); o.Ranks.First() {
			_, w.Copied, err = modelBeside(s)
			err = errors.Join(err, settle(out))
		}
		return w, o.Ranks.Together(err)
	}
	resumed, err := writeShards(ctx, s, rules, dir, shards, o)
	if err == nil {
		if err = s.Unchanged(); err != nil {
			err = errors.Join(err, files.RemoveAll(dir))
		}
	}
	if err := o.Ranks.Together(err); err != nil {
		return nil, err
	}
	if w.Resumed, err = o.summed(len(s.Files()), resumed); err != nil {
		return nil, err
	}
	if o.Ranks.First() {
		w.Copied, err = finish(s, shards, dir, out)
	}
	return w, o.Ranks.Together(err)
}

// summed sums a number and the distances of all ranks.
func (o *Output) summed(files, n int) (int, error) {
	sums := []float64{float64(n)}
	if o.Meter != nil {
		sums = append(sums, o.Meter.Sums(files)...)
	}
	if err := o.Ranks.Sum64(sums).Wait(); err != nil {
		return 0, err
	}
	if o.Meter != nil && !o.Ranks.Single() {
		*o.Meter = extrapolate.Meter{}
		o.Meter.Add(files, sums[1:])
	}
	return int(sums[0]), nil
}

// prepare locks the hidden folder and begins it, or reuses that of the same plan. It reports whether out is complete
// already, but for its last step.
func prepare(out string, plan []byte, resume bool) (complete bool, unlock func(), err error) {
	if err := files.MkdirAll(filepath.Dir(out)); err != nil {
		return false, nil, err
	}
	dir, unlock, err := files.Beside(out, "merge")
	if err != nil {
		return false, nil, err
	}
	was, err := files.Read(filepath.Join(out, planName))
	switch {
	case os.IsNotExist(err):
		if err = begin(dir, plan, resume); err == nil {
			err = likeOut(dir, out)
		}
	case err == nil && !bytes.Equal(was, plan):
		err = fmt.Errorf("%s is of another merge, or its files have changed: remove it, or name another folder", out)
	}
	if err != nil {
		unlock()
		return false, nil, err
	}
	return was != nil, unlock, nil
}

// writeShards writes this rank's shards that are not there yet.
func writeShards(ctx context.Context, s *extrapolate.Series, rules extrapolate.Rules, dir string,
	shards [][]extrapolate.Tensor, o Output) (resumed int, err error) {
	metadata := map[string]string{"format": "pt"}
	maps.Copy(metadata, s.Metadata(o.Metadata))
	for i := o.Ranks.Rank(); i < len(shards); i += o.Ranks.Size() {
		path := filepath.Join(dir, shardName(i, len(shards)))
		if whole(path) {
			resumed++
			continue
		}
		if err := writeShard(ctx, s, rules, path, shards[i], metadata, o.WriteOptions); err != nil {
			if ctx.Err() == nil && resumed+i == 0 && o.Ranks.Single() {
				return resumed, errors.Join(err, files.RemoveAll(dir))
			}
			return resumed, fmt.Errorf("%w (%d of %d shards are in %s: --resume goes on from there)", err, countShards(dir),
				len(shards), dir)
		}
	}
	return resumed, nil
}

// countShards counts the shards in a folder.
func countShards(dir string) (n int) {
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		if isShard(e.Name()) {
			n++
		}
	}
	return n
}

// finish adds the index and the model's other files, and gives the folder its name.
func finish(s *extrapolate.Series, shards [][]extrapolate.Tensor, dir, out string) (copied []string, err error) {
	if len(shards) > 1 {
		if err := files.Write(filepath.Join(dir, indexName), index(shards)); err != nil {
			return nil, err
		}
	}
	from, copied, err := modelBeside(s)
	if err != nil {
		return nil, err
	}
	for _, name := range copied {
		if err := files.Copy(filepath.Join(dir, name), filepath.Join(from, name)); err != nil {
			return nil, err
		}
	}
	if err := files.SyncDir(dir); err != nil {
		return nil, err
	}
	if err := files.RenameFolder(dir, out); err != nil {
		return nil, fmt.Errorf("%w (the output is in %s, complete: --resume tries again)", err, dir)
	}
	return copied, settle(out)
}

// settle is the last step: it takes the plan out of the complete output, whose name must be on the disk before.
func settle(out string) error {
	err := files.SyncDir(filepath.Dir(out))
	if err == nil {
		err = files.Remove(filepath.Join(out, planName))
	}
	if err != nil {
		return fmt.Errorf("%w (the output is complete but for this: --resume tries again)", err)
	}
	return files.SyncDir(out)
}

// cut distributes tensors to shards in their order. A scale goes with the tensor before it.
func cut(tensors []extrapolate.Tensor, most int64) (shards [][]extrapolate.Tensor) {
	size := int64(0)
	for _, t := range tensors {
		if n := t.Bytes(); shards == nil || size > 0 && size+n > most && t.Role != extrapolate.Scale {
			shards, size = append(shards, nil), 0
		}
		shards[len(shards)-1] = append(shards[len(shards)-1], t)
		size += t.Bytes()
	}
	return shards
}

func shardName(i, n int) string {
	if n == 1 {
		return wholeName
	}
	return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
}

// isShard reports whether a file's name is of shardName.
func isShard(name string) bool {
	ok, _ := filepath.Match("model*.safetensors", name)
	return ok
}

// planOf identifies a merge: the files in their current state, the rules in words, and the shards.
func planOf(s *extrapolate.Series, shards [][]extrapolate.Tensor, o Output) []byte {
	sum := sha256.New()
	for _, f := range s.Files() {
		fmt.Fprintf(sum, "%s\n%s\n", f.Path, f.File.Stamp())
	}
	for _, list := range shards {
		for _, t := range list {
			fmt.Fprintf(sum, "%q %s %v\n", t.Name, t.DType, t.Shape)
		}
		fmt.Fprintln(sum)
	}
	fmt.Fprintln(sum, o.Stats, o.Metadata)
	b, _ := json.Marshal(map[string]string{"plan": fmt.Sprintf("%x", sum.Sum(nil))})
	return b
}

// begin creates the hidden folder, or reuses that of the same plan.
func begin(dir string, plan []byte, resume bool) error {
	was, err := files.Read(filepath.Join(dir, planName))
	switch {
	case err == nil && resume && bytes.Equal(was, plan):
		return tidy(dir)
	case err == nil && resume:
		return fmt.Errorf("%s is of another merge, or its files have changed: start without --resume", dir)
	case resume && os.IsNotExist(err):
		return fmt.Errorf("nothing to resume: there is no %s", dir)
	}
	if err := files.RemoveAll(dir); err != nil {
		return err
	}
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, planName), plan)
}

// tidy removes a killed merge's leftovers from the hidden folder, but not the plan and the shards.
func tidy(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Name() == planName || isShard(e.Name()) {
			continue
		}
		if err := files.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// whole reports whether a shard exists and matches its checksums.
func whole(path string) bool {
	f, err := safetensors.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	ok, err := f.Verify()
	return ok && err == nil
}

func writeShard(ctx context.Context, s *extrapolate.Series, rules extrapolate.Rules, path string,
	list []extrapolate.Tensor, metadata map[string]string,
	opt extrapolate.WriteOptions) error {
	var tensors []safetensors.Tensor
	wanted := map[string]bool{}
	for _, t := range list {
		tensors = append(tensors, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape})
		wanted[t.Name] = true
	}
	w, err := safetensors.Create(path, tensors, metadata)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := s.Combine(ctx, w, func(t extrapolate.Tensor) bool { return wanted[t.Name] }, rules, opt); err != nil {
		return err
	}
	return w.Commit()
}

// index is the JSON map from tensors to shards.
func index(shards [][]extrapolate.Tensor) []byte {
	size := int64(0)
	where := map[string]string{}
	for i, list := range shards {
		for _, t := range list {
			where[t.Name] = shardName(i, len(shards))
			size += t.Bytes()
		}
	}
	return statedict.Index(where, size)
}

// modelFiles are the files beside the weights that loading a model needs.
var modelFiles = []string{"config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json",
	"added_tokens.json", "vocab*", "merges.txt",
	"*.model", "*.tiktoken", "chat_template*", "preprocessor_config.json", "processor_config.json", "adapter_config.json"}

// modelBeside finds modelFiles in the folder of the last checkpoint or of its index.
func modelBeside(s *extrapolate.Series) (from string, names []string, err error) {
	from = s.Files()[len(s.Files())-1].Path
	if st, err := os.Stat(from); err != nil || !st.IsDir() {
		if !strings.HasSuffix(from, ".index.json") {
			return "", nil, nil
		}
		from = filepath.Dir(from)
	}
	all, err := os.ReadDir(from)
	if err != nil {
		return "", nil, err
	}
	for _, e := range all {
		ours := slices.ContainsFunc(modelFiles, func(pattern string) bool {
			ok, _ := filepath.Match(pattern, e.Name())
			return ok
		})
		if ours && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return from, names, nil
}
