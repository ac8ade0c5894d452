package merge

import (
	"context"

	"onlinerna/train/extrapolate"
)

// writeFile writes one file. Of several ranks each writes its tensors; the first one begins and commits the file.
func writeFile(ctx context.Context, s *extrapolate.Series, rules extrapolate.Rules, o Output) error {
	g := o.Ranks
	if g.Single() {
		return s.WriteRules(ctx, o.Path, rules, o.WriteOptions)
	}
	var name []byte
	if g.First() {
		w, err := s.Begin(o.Path, "", o.Metadata)
		if err == nil {
			defer w.Abort()
			name = []byte(w.Unfinished())
		}
		if err := g.Together(err); err != nil {
			return err
		}
		if err := g.Share(&name); err != nil {
			return err
		}
		err = s.Combine(ctx, w, share(s, g.Rank(), g.Size()), rules, o.WriteOptions)
		parts, err := o.meet(s, err, nil)
		if err != nil {
			return err
		}
		for _, part := range parts {
			w.Take(part)
		}
		if o.Sync {
			err = w.Commit()
		} else {
			err = w.CommitUnsynced()
		}
		return g.Together(err)
	}
	if err := g.Together(nil); err != nil {
		return err
	}
	if err := g.Share(&name); err != nil {
		return err
	}
	w, err := s.Begin(o.Path, string(name), o.Metadata)
	var part []byte
	if err == nil {
		defer w.Abort()
		if err = s.Combine(ctx, w, share(s, g.Rank(), g.Size()), rules, o.WriteOptions); err == nil {
			part, err = w.Leave(o.Sync)
		}
	}
	if _, err := o.meet(s, err, part); err != nil {
		return err
	}
	return g.Together(nil)
}

// meet waits until all ranks have written their parts, and gathers the checksums of these.
func (o *Output) meet(s *extrapolate.Series, err error, part []byte) ([][]byte, error) {
	if err == nil {
		err = s.Unchanged()
	}
	if err := o.Ranks.Together(err); err != nil {
		return nil, err
	}
	if _, err := o.summed(len(s.Files()), 0); err != nil {
		return nil, err
	}
	return o.Ranks.Gather(part)
}

// share chooses a rank's tensors: neighbours in the file, of about as many bytes as those of the other ranks.
func share(s *extrapolate.Series, rank, ranks int) func(extrapolate.Tensor) bool {
	list := s.Tensors()
	total := int64(0)
	for _, t := range list {
		total += t.Bytes()
	}
	own, at := map[string]bool{}, int64(0)
	for _, t := range list {
		middle := at + t.Bytes()/2
		own[t.Name] = int(min(middle*int64(ranks)/max(total, 1), int64(ranks-1))) == rank
		at += t.Bytes()
	}
	return func(t extrapolate.Tensor) bool { return own[t.Name] }
}
