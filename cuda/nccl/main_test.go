//go:build gpu && cgo

package nccl_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/nccl"
)

// Variables that make this program a rank of a scenario.
const (
	scenarioVar = "NCCL_TEST_SCENARIO"
	rankVar     = "NCCL_TEST_RANK" // "1/3"
	idVar       = "NCCL_TEST_ID"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(scenarioVar); name != "" {
		if err := scenarios[name](); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Print("ok")
		os.Exit(0)
	}
	os.Exit(gputest.Main(m))
}

// process runs a scenario in its own process, for at most a minute, and returns its output.
func process(name string, env ...string) (string, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, scenarioVar+"="+name)...)
	t := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer t.Stop()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// onRanks runs a scenario on this many ranks, each with its own GPU.
func onRanks(t *testing.T, name string, ranks int, env ...string) []string {
	t.Helper()
	id, err := nccl.NewID()
	gputest.Check(t, err)
	said := make([]string, ranks)
	var all sync.WaitGroup
	for k := range ranks {
		all.Go(func() {
			out, err := process(name, append(env, idVar+"="+hex.EncodeToString(id[:]),
				fmt.Sprintf("%s=%d/%d", rankVar, k, ranks), "RNA_SIM_DEVICES="+fmt.Sprint(ranks))...)
			if said[k] = out; err != nil {
				said[k] += " " + err.Error()
			}
		})
	}
	all.Wait()
	return said
}

// rank returns the scenario's rank.
func rank() (k, size int, id nccl.ID) {
	a, b, _ := strings.Cut(os.Getenv(rankVar), "/")
	k, _ = strconv.Atoi(a)
	size, _ = strconv.Atoi(b)
	hex.Decode(id[:], []byte(os.Getenv(idVar)))
	return k, size, id
}

// joined runs f on a rank with its communicator.
func joined(f func(c *driver.Context, m *nccl.Comm) error) func() error {
	return func() (err error) {
		k, size, id := rank()
		c, err := driver.Open(k, driver.Options{})
		if err != nil {
			return err
		}
		m, err := nccl.Join(c, id, k, size)
		if err != nil {
			return err
		}
		if err := f(c, m); err != nil {
			return err
		}
		errs := []error{m.Close()}
		for _, x := range held {
			errs = append(errs, x.Close())
		}
		return errors.Join(append(errs, c.Close())...)
	}
}
