package main

import (
	"errors"
	"fmt"
	"strconv"

	"onlinerna/internal/parallel"
)

// coresFlag is a number of goroutines or threads, as many as there can be cores at most.
type coresFlag int

func (f *coresFlag) Type() string   { return "int" }
func (f *coresFlag) String() string { return strconv.Itoa(int(*f)) }

// Set implements pflag.Value.
func (f *coresFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return err
	}
	if n < 0 {
		return errors.New("must not be negative")
	}
	if n > parallel.Most {
		return fmt.Errorf("at most %d, and no more than there are cores are of use", parallel.Most)
	}
	*f = coresFlag(n)
	return nil
}

// cores adds a flag for a number of goroutines or threads.
func (g group) cores(p *int, name, usage string) {
	g.Var((*coresFlag)(p), name, usage)
}
