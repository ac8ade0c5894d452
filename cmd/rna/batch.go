package main

import (
	"fmt"
	"strconv"

	"onlinerna/train/network"
)

// batchFlag is the value of --batch: a number of images or auto.
type batchFlag struct{ n *int }

// Type, String and Set are pflag.Value.
func (f batchFlag) Type() string { return "images" }

func (f batchFlag) String() string {
	switch {
	case f.n == nil || *f.n == 0:
		return ""
	case *f.n == network.AutoBatch:
		return "auto"
	}
	return strconv.Itoa(*f.n)
}

func (f batchFlag) Set(s string) error {
	if s == "auto" {
		*f.n = network.AutoBatch
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is no number of images: want one from 1, or auto", s)
	}
	if n < 1 {
		return fmt.Errorf("batch %d must be at least 1, or auto", n)
	}
	*f.n = n
	return nil
}
