package cuda

import (
	"errors"

	"onlinerna/cuda/check/datasheet"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/net"
	"onlinerna/cuda/number"
	"onlinerna/cuda/space"
	"onlinerna/nn/device"
)

// ErrNotBuilt reports a build without GPU support and how to build one with it.
var ErrNotBuilt = errors.New("this build has no GPU support: build it with \"make gpu\" (needs gcc, no CUDA toolkit)")

// Types of package driver.
type (
	// Info describes a GPU.
	Info = driver.Info
	// Options of [Open]. The zero value is a good choice.
	Options = driver.Options
	// NoDeviceError reports a GPU number that does not exist, and lists the GPUs that do.
	NoDeviceError = driver.NoDeviceError
)

// Find returns the number of the GPU whose UUID begins with name.
func Find(all []Info, name string) (ordinal int, err error) { return driver.Find(all, name) }

var (
	// ErrLost reports that this process cannot use GPUs any more: end it and resume in a new one from the files on
	// disk.
	ErrLost = driver.ErrLost
	// ErrOutOfMemory matches every error about missing memory.
	ErrOutOfMemory = driver.ErrOutOfMemory
)

// NetOptions are the user's choices for a device on which nets run.
type NetOptions = net.Options

// Precision is the number format in which nets store and multiply.
type Precision = number.Precision

// The precisions.
const (
	Float32  = number.Float32
	TF32     = number.TF32
	BFloat16 = number.BFloat16
	Float16  = number.Float16
)

// ParsePrecision returns the precision with this name.
func ParsePrecision(name string) (Precision, error) { return number.ParsePrecision(name) }

// PlansOptions are the card and the programs for which [MakePlans] makes plans, and the folder of the plans.
type PlansOptions struct {
	Card      string
	Threads   int
	Precision Precision
	Describe  func(device.Device) error // describes the programs to a device, which plans them
	Folder    string                    // for the files, by default that of the cache
	After     func(done string)         // called after each graph
}

// PlansReport counts plans and the bytes of their files.
type PlansReport struct {
	Card   string `json:"card"`
	CuDNN  string `json:"cudnn"`
	Folder string `json:"folder"`
	Graphs int    `json:"graphs"`
	Plans  int    `json:"plans"`
	Bytes  int64  `json:"bytes"`
}

// SpaceOptions are the options of a [Space]. The zero value is a good choice.
type SpaceOptions = space.Options

// DefaultReserve is the default of [SpaceOptions].Reserve: 256 MiB.
const DefaultReserve = space.DefaultReserve

// Card holds a card's figures from its data sheet.
type Card = datasheet.Card

// FindCard returns the card with this key, such as h100.
func FindCard(key string) (Card, error) { return datasheet.Find(key) }
