// Package machine runs Gorgonia graphs on a device.
//
// A Machine is a gorgonia.VM. New turns a graph of nn's ops into a program once: it sorts the nodes, drops those on
// which no wanted result depends, lets the device group steps that it runs faster together, asks it for the memory
// layout of each group, and plans all of it into one arena by liveness. The first Run allocates the arena and binds a
// kernel for every group; from then on a Run calls these closures and allocates nothing.
//
// A device may have steps run for a few samples at a time: their kernels run several times, and their results take
// memory for those samples alone.
//
// A batch size is part of a graph, so there is a Machine for each batch size and mode. They share parameters
// by binding the same storage, and scratch memory by sharing an Arena.
package machine
