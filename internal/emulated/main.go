//go:build linux && amd64

// Command emulated runs a program on the processor that Bochs emulates: one with AVX-512, AVX512_BF16 and
// AMX, whatever this one has.
//
//	go test -exec 'emulated -machine FOLDER' ...
//
// The folder is made by scripts/bochs_check.sh: the emulator, its BIOS, a Linux kernel and a boot loader. This command
// makes a CD of them with a RAM disk that contains the program, the folder testdata beside it, and this command again
// as the first process. The program's output comes through the serial port, and its exit status is this command's.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// job is the input of the emulated machine's first process.
type job struct {
	Args []string // the program and its arguments
	Env  []string
	Dir  string // where it runs
}

const (
	jobFile = "/job"
	program = "/program"
	exited  = "emulated: exit status "
)

func main() {
	if os.Getpid() == 1 {
		boot()
	}
	machine := flag.String("machine", "", "`folder` with bochs, bios, vgabios, linux, isolinux.bin and ldlinux.c32")
	flag.Parse()
	if flag.NArg() == 0 || *machine == "" {
		flag.Usage()
		os.Exit(2)
	}
	status, err := emulate(*machine, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "emulated:", err)
		os.Exit(1)
	}
	os.Exit(status)
}

func (j job) encode() []byte {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	return text
}
