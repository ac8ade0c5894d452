package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onlinerna/train/option"
)

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		want string
		plan Plan
	}{
		{`unknown option "lrr", did you mean lr?`, Plan{Set: []string{"lrr=1"}}},
		{"want NAME=VALUES", Plan{Set: []string{"lr"}}},
		{"nothing to sweep", Plan{}},
		{"there is one", Plan{Seeds: 3, Halving: 3}},
		{"empty value", Plan{Set: []string{"lr=0.1,,1"}}},
		{"lr fast: want a number", Plan{Set: []string{"lr=0.1,fast"}}},
		{"twice", Plan{Set: []string{"lr=0.1,1e-1"}}},
		{"set twice", Plan{Set: []string{"lr=0.1", "lr=0.2"}}},
		{"is empty", Plan{Set: []string{"lr=lin:1..1"}, Trials: 2}},
		{"begins above 0", Plan{Set: []string{"lr=log:0..1"}, Trials: 2}},
		{"want two numbers", Plan{Set: []string{"lr=log:0.1-1"}, Trials: 2}},
		{"want whole numbers", Plan{Set: []string{"batch=int:1.5..8"}, Trials: 2}},
		{"epochs 0.5: want a whole number", Plan{Set: []string{"epochs=lin:0.5..8"}, Trials: 2}},
		{"--trials", Plan{Set: []string{"lr=log:0.1..1"}}},
		{"--seeds", Plan{Set: []string{"seed=1,2"}}},
		{"names the folders", Plan{Set: []string{"out=a,b"}}},
		{"must be at least 1", Plan{Seeds: -1, Set: []string{"lr=1"}}},
		{"must be at least 2", Plan{Set: []string{"lr=1"}, Halving: 1}},
		{"goes with halving", Plan{Set: []string{"lr=1"}, MinEpochs: 2}},
		{"more than 100000 points", Plan{Set: []string{"lr=" + many(400), "weight-decay=" + many(400)}}},
	} {
		if c.plan.Seeds == 0 {
			c.plan.Seeds = 1
		}
		if _, err := c.plan.Candidates(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

func many(n int) string {
	var list []string
	for i := range n {
		list = append(list, strconv.Itoa(i+1))
	}
	return strings.Join(list, ",")
}

func words(list []Candidate) string {
	var all []string
	for _, c := range list {
		all = append(all, c.String())
	}
	return strings.Join(all, "; ")
}

func TestGrid(t *testing.T) {
	p := Plan{Seeds: 1, Set: []string{"lr=0.1,1", "lr_milestones=2,3;4"}}
	list, err := p.Candidates()
	const want = "lr 0.1, lr-milestones 2,3; lr 0.1, lr-milestones 4; lr 1, lr-milestones 2,3; lr 1, lr-milestones 4"
	if err != nil || words(list) != want || list[3].Index != 4 {
		t.Errorf("%s, %v", words(list), err)
	}
	p.Trials = 9
	if list, err := p.Candidates(); err != nil || words(list) != want {
		t.Errorf("more trials than points: %s, %v", words(list), err)
	}
	p.Trials = 3
	list, err = p.Candidates()
	if err != nil || len(list) != 3 || words(list) == want {
		t.Errorf("%s, %v", words(list), err)
	}
	p = Plan{Seeds: 4}
	if list, err := p.Candidates(); err != nil || words(list) != "candidate 1" {
		t.Errorf("seeds alone: %s, %v", words(list), err)
	}
}

// Draws are the same for the same seed, in range, and uniform: in a tenth of the range lies a tenth of 4000 draws, of
// which the standard deviation is 19.
func TestRandom(t *testing.T) {
	p := Plan{Seeds: 1, Trials: 4000, Set: []string{"lr=log:1e-3..10", "momentum=lin:0.5..0.7", "epochs=int:2..5"}}
	list, err := p.Candidates()
	if err != nil || len(list) != 4000 {
		t.Fatal(len(list), err)
	}
	again, _ := p.Candidates()
	p.Options = []option.Setting{{Name: "seed", Text: "1"}}
	other, _ := p.Candidates()
	if words(list) != words(again) || words(list) == words(other) {
		t.Error("the draws do not depend on the seed alone")
	}
	low := [2]int{}
	epochs := map[string]int{}
	for _, c := range list {
		rate, _ := strconv.ParseFloat(c.Settings[0].Text, 64)
		momentum, _ := strconv.ParseFloat(c.Settings[1].Text, 64)
		if rate < 1e-3 || rate > 10 || momentum < .5 || momentum > .7 {
			t.Fatal(c)
		}
		if rate < math.Pow(10, -3+.4) {
			low[0]++
		}
		if momentum < .52 {
			low[1]++
		}
		epochs[c.Settings[2].Text]++
	}
	if low[0] < 310 || low[0] > 490 || low[1] < 310 || low[1] > 490 || len(epochs) != 4 || epochs["2"] < 860 ||
		epochs["5"] < 860 {
		t.Error(low, epochs)
	}
	p = Plan{Seeds: 1, Trials: 9, Set: []string{"epochs=int:2..5"}}
	if list, err := p.Candidates(); err != nil || len(list) != 4 {
		t.Errorf("%s, %v", words(list), err)
	}
}

func TestShards(t *testing.T) {
	env := func(words string) func(string) string {
		return func(name string) string {
			f := strings.Fields(words)
			if i := slices.Index(f, name); i >= 0 {
				return f[i+1]
			}
			return ""
		}
	}
	for _, c := range []struct {
		text, env string
		shard, of int
		want      string
	}{
		{"2/3", "", 2, 3, ""},
		{"auto", "OMPI_COMM_WORLD_RANK 0 OMPI_COMM_WORLD_SIZE 4", 1, 4, ""},
		{"auto", "SLURM_ARRAY_TASK_ID 7 SLURM_ARRAY_TASK_MIN 5 SLURM_ARRAY_TASK_COUNT 3", 3, 3, ""},
		{"auto", "SLURM_PROCID 1 SLURM_NTASKS 2", 2, 2, ""},
		{"auto", "", 0, 0, "neither"},
		{"auto", "PMI_RANK 4 PMI_SIZE 4", 0, 0, "not a number"},
		{"0/3", "", 0, 0, "want i/n"},
		{"4/3", "", 0, 0, "want i/n"},
		{"a", "", 0, 0, "want i/n"},
	} {
		i, n, err := ParseShard(c.text, env(c.env))
		if i != c.shard || n != c.of || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %d/%d, %v", c.text, c.env, i, n, err)
		}
	}
}
