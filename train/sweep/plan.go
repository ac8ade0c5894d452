// Package sweep trains the candidates of a space of options, each with several seeds, and can stop poor ones early.
//
// A sweep's folder holds its plan, which never changes, and a folder for each run. All state is in the runs' folders: a
// sweep that was killed goes on from them, and ends with the same runs, bit for bit. Decisions depend on the plan and
// the runs' records alone, not on the time that runs take: see [Halving].
package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train"
	"onlinerna/train/option"
)

// A Plan says which runs a sweep has. It determines the results of the sweep.
type Plan struct {
	Version int              `json:"version"`
	Options []option.Setting `json:"options"`          // of all runs
	Set     []string         `json:"set"`              // the space: see ParseDimension
	Trials  int              `json:"trials"`           // candidates to draw; 0 for the grid
	Search  string           `json:"search,omitempty"` // how to choose them: Random or TPE
	Seeds   int              `json:"seeds"`            // runs of each candidate, with successive seeds
	Halving int              `json:"halving"`          // one in so many candidates goes on; 0: all
	// MinEpochs is the first number of epochs after which candidates are compared; 0 for the default.
	MinEpochs int `json:"min_epochs"`
	// Width is the number of candidates that train at a time as far as decisions are concerned.
	Width  int `json:"width"`
	Shards int `json:"shards"` // processes that share the candidates; halving compares those of one shard
}

// The ways to choose candidates: at random, or from the tenth on by the scores of earlier ones.
const (
	Random = "random"
	TPE    = "tpe"
)

const (
	planName    = "sweep.json"
	planVersion = 1
)

// A Candidate is a point of the space.
type Candidate struct {
	Index    int // from 1
	Settings []option.Setting
}

func (c Candidate) String() string {
	if len(c.Settings) == 0 {
		return fmt.Sprintf("candidate %d", c.Index)
	}
	var words []string
	for _, s := range c.Settings {
		words = append(words, s.Name+" "+s.String())
	}
	return strings.Join(words, ", ")
}

// Candidates checks the plan, and lists its candidates.
func (p *Plan) Candidates() ([]Candidate, error) {
	switch {
	case p.Seeds < 1:
		return nil, fmt.Errorf("seeds %d: must be at least 1", p.Seeds)
	case p.Trials < 0:
		return nil, fmt.Errorf("trials %d: must not be negative", p.Trials)
	case p.Search != "" && p.Search != Random && p.Search != TPE:
		return nil, fmt.Errorf("unknown search %q: use %s or %s", p.Search, Random, TPE)
	case p.Search == TPE && p.Trials == 0:
		return nil, errors.New("search tpe chooses candidates one after another: say how many by --trials")
	case p.Search == TPE && p.Shards > 1:
		return nil, errors.New("search tpe chooses candidates by the scores of all earlier ones, which parts do not share: " +
			"leave --shard out")
	case p.Halving < 0 || p.Halving == 1:
		return nil, fmt.Errorf("halving %d: must be at least 2", p.Halving)
	case p.MinEpochs != 0 && p.Halving == 0:
		return nil, errors.New("min-epochs goes with halving")
	case p.MinEpochs < 0:
		return nil, fmt.Errorf("min-epochs %d: must be at least 1", p.MinEpochs)
	case len(p.Set) == 0 && p.Seeds == 1:
		return nil, errors.New("nothing to sweep: give --set NAME=VALUES, or several --seeds")
	case len(p.Set) == 0 && p.Halving > 0:
		return nil, errors.New("halving compares candidates, and there is one: give --set NAME=VALUES")
	}
	space, err := p.space()
	if err != nil {
		return nil, err
	}
	points, err := grid(space)
	drawn := slices.ContainsFunc(space, func(d Dimension) bool { return d.Kind != "" })
	if p.Trials > 0 && (drawn || err != nil || p.Trials < len(points) || p.Search == TPE) {
		first, serr := p.spec(nil)
		if serr != nil {
			return nil, serr
		}
		points, err = random(space, p.Trials, first.Seed), nil
	}
	if err != nil {
		return nil, err
	}
	var list []Candidate
	for i, settings := range points {
		list = append(list, Candidate{i + 1, settings})
		if _, err := p.spec(settings); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// space parses the dimensions.
func (p *Plan) space() (space []Dimension, err error) {
	for _, text := range p.Set {
		d, err := ParseDimension(text)
		if err != nil {
			return nil, err
		}
		for _, other := range space {
			if other.Name == d.Name {
				return nil, fmt.Errorf("%s is set twice: give all its values at once", d.Name)
			}
		}
		if d.Kind != "" && p.Trials == 0 {
			return nil, fmt.Errorf("%s is a range: say how many candidates to draw by --trials", d.Name)
		}
		space = append(space, d)
	}
	return space, nil
}

// spec is the Spec of a candidate, with the first seed.
func (p *Plan) spec(settings []option.Setting) (c train.Spec, err error) {
	if err = train.Options().Apply(&c, p.Options...); err == nil {
		err = train.Options().Apply(&c, settings...)
	}
	return c, err
}

// Write records a new sweep in a folder. If it holds the same plan already, again decides whether that is an error.
func (p Plan) Write(dir string, again bool) error {
	p.Version = planVersion
	old, err := ReadPlan(dir)
	switch {
	case err == nil && !again:
		return fmt.Errorf("%s holds a sweep already: go on with --resume %s, or choose another folder", dir, dir)
	case err == nil && !reflect.DeepEqual(old.normal(), p.normal()):
		return fmt.Errorf("%s holds another sweep: say the same options, or choose another folder", dir)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err == nil {
		return fmt.Errorf("%s holds a run: choose another folder for the sweep", dir)
	}
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, planName), append(b, '\n'))
}

// normal is the plan as its file gives it.
func (p Plan) normal() (q Plan) {
	b, _ := json.Marshal(p)
	_ = json.Unmarshal(b, &q)
	return q
}

// ReadPlan reads the plan of the sweep in a folder.
func ReadPlan(dir string) (p Plan, err error) {
	path := filepath.Join(dir, planName)
	b, err := files.ReadFileAtMost(path, 16<<20)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	if p.Version != planVersion {
		return p, fmt.Errorf("%s: version %d, this program reads %d", path, p.Version, planVersion)
	}
	return p, nil
}
