package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	module    = "onlinerna"
	survivors = "internal/mutants/survivors.txt"
	allowed   = 0.03
	fewest    = 80 // faults of a group, at the least
)

// groups are the packages whose tests judge each other's faults.
var groups = [][]string{{"rna", "rna/theory"}, {"rna/convex"}, {"train/average"}, {"train/report"}, {"train/replay"}}

// A test is one test of a built package.
type test struct {
	pkg, name string
	time      time.Duration
}

// settings are the flags.
type settings struct {
	sampling
	workers       int
	verbose, show bool
}

// sampling says which faults are planted.
type sampling struct {
	share float64
	seed  uint64
	match *regexp.Regexp
}

func main() {
	var o settings
	flag.Float64Var(&o.share, "share", 1, "plant this share of the faults")
	flag.Uint64Var(&o.seed, "seed", 0, "plant the sample of this number")
	match := flag.String("match", "", "plant only faults that match this regular expression")
	flag.IntVar(&o.workers, "workers", 2, "test this many faults at a time")
	flag.BoolVar(&o.verbose, "v", false, "print the test that finds each fault")
	flag.BoolVar(&o.show, "sources", false, "print the folder with the rewritten sources, and keep it")
	flag.Parse()
	var err error
	if o.match, err = regexp.Compile(*match); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: -match:", err)
		os.Exit(2)
	}
	failed := false
	for _, group := range groups {
		if flag.NArg() > 0 && !slices.ContainsFunc(flag.Args(), func(p string) bool { return slices.Contains(group, p) }) {
			continue
		}
		ok, err := judge(group, o)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(1)
		}
		failed = failed || !ok
	}
	if failed {
		os.Exit(1)
	}
}

// judge plants the faults of one group and prints a line of figures, and the survivors that are not listed.
func judge(group []string, o settings) (ok bool, err error) {
	folder, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	if o.show {
		fmt.Println(folder)
	} else {
		defer os.RemoveAll(folder)
	}
	faults, err := build(folder, module, group)
	if err != nil {
		return false, err
	}
	reached, err := reach(folder, group, o.verbose)
	if err != nil {
		return false, err
	}
	known, err := reasons()
	if err != nil {
		return false, err
	}
	o.share = max(o.share, fewest/float64(len(faults)))
	planted := sample(faults, o.sampling)
	killers := make([]string, len(planted))
	var work sync.WaitGroup
	next := make(chan int)
	for range o.workers {
		work.Go(func() {
			for i := range next {
				f := planted[i]
				if killers[i] = kill(folder, f.id, reached[f.id]); o.verbose {
					fmt.Printf("%s:%d: %s: %s\n", f.file, f.line, cmp.Or(killers[i], "survives"), f.key)
				}
			}
		})
	}
	for i := range planted {
		next <- i
	}
	close(next)
	work.Wait()
	found, same, open := 0, 0, 0
	ok = true
	for i, f := range planted {
		key := f.key
		reason, listed := known[key]
		switch {
		case killers[i] != "":
			found++
			if listed && !strings.HasPrefix(reason, "same") { // of others, rounding may decide
				ok = false
				fmt.Printf("%s:%d: listed in %s, and found by %s: %s\n", f.file, f.line, survivors, killers[i], key)
			}
			continue
		case listed && strings.HasPrefix(reason, "same"):
			same++
			continue
		case !listed:
			ok = false
			how := "survives"
			if len(reached[f.id]) == 0 {
				how = "is reached by no test"
			}
			fmt.Printf("%s:%d %s: %s\n", f.file, f.line, how, key)
		}
		open++
	}
	rate := float64(open) / float64(max(1, found+open))
	fmt.Printf("%s: %d faults, %d change no result; of the other %d, %d survive (%.1f %%)\n", strings.Join(group, ", "),
		len(planted), same, found+open, open, 100*rate)
	return ok && rate <= allowed, nil
}

// sample names the faults and returns a share of those that match.
func sample(faults []fault, o sampling) []fault {
	seen := map[string]int{}
	var planted []fault
	for _, f := range faults {
		f.key = strings.Join([]string{f.file, f.name, f.kind, f.text}, " | ")
		if seen[f.key]++; seen[f.key] > 1 {
			f.key += " | " + strconv.Itoa(seen[f.key])
		}
		h := fnv.New64a()
		if o.seed > 0 {
			fmt.Fprintf(h, "%d ", o.seed)
		}
		h.Write([]byte(f.key))
		if float64(h.Sum64()%10007) < 10007*o.share && o.match.MatchString(f.key) {
			planted = append(planted, f)
		}
	}
	return planted
}

// reasons reads survivors.txt: a fault's key and its reason a line, with " -- " between.
func reasons() (map[string]string, error) {
	text, err := os.ReadFile(survivors)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	known := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, reason, cut := strings.Cut(line, " -- ")
		if !cut || !strings.HasPrefix(reason, "same") && !strings.HasPrefix(reason, "open") {
			return nil, fmt.Errorf("%s:%d: a line is a fault, \" -- \" and \"same\" or \"open\" with a reason", survivors,
				i+1)
		}
		known[key] = reason
	}
	return known, err
}

// reach runs each test once, without faults: those that reach a fault, the fastest first.
func reach(folder string, group []string, verbose bool) (map[int][]test, error) {
	reached := map[int][]test{}
	for _, pkg := range group {
		out, err := run(folder, time.Minute, pkg, nil, "-test.list=.")
		if err != nil {
			return nil, err
		}
		for _, name := range regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\S*`).FindAllString(string(out), -1) {
			file := filepath.Join(folder, "reached")
			start := time.Now()
			out, err := run(folder, 5*time.Minute, pkg, []string{"FAULT_REACHED=" + file}, "-test.run=^"+name+"$", "-test.short")
			if err != nil {
				return nil, fmt.Errorf("%s of %s fails without a fault: %w: %s", name, pkg, err, out)
			}
			t := test{pkg, name, time.Since(start)}
			if verbose {
				fmt.Printf("%s of %s takes %v\n", name, pkg, t.time.Round(time.Millisecond))
			}
			lines, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			for _, line := range strings.Fields(string(lines)) {
				id, _ := strconv.Atoi(line)
				reached[id] = append(reached[id], t)
			}
			os.Remove(file)
		}
	}
	for _, tests := range reached {
		slices.SortFunc(tests, func(a, b test) int { return int(a.time - b.time) })
	}
	return reached, nil
}

// kill returns the first test that fails with a fault on.
func kill(folder string, id int, tests []test) string {
	for _, t := range tests {
		_, err := run(folder, 3*time.Second+5*t.time, t.pkg, []string{"FAULT_ID=" + strconv.Itoa(id)},
			"-test.run=^"+t.name+"$", "-test.failfast", "-test.short")
		if err != nil {
			return t.name
		}
	}
	return ""
}

// run runs the tests of a package in its folder.
func run(folder string, limit time.Duration, pkg string, environment []string, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	cmd := exec.CommandContext(ctx, binary(folder, pkg), args...)
	cmd.Dir = pkg
	cmd.Env = append(os.Environ(), environment...)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}
