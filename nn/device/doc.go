// Package device is the interface between a graph and the hardware that runs it.
//
// A Device runs groups of ops in two phases. Describe is given a group and the layouts of its inputs, and
// names the layouts and sizes of its outputs and the scratch it needs. The caller plans memory, and
// Bind returns a kernel for the planned addresses. Nothing is looked up or allocated when the kernel runs.
//
// Layouts are private to the device. The caller passes them on and converts tensors with the device's Upload and
// Download.
//
// A Vector is the flat storage of all parameters of a model, of their gradients, of the optimiser's state: training
// is arithmetic on vectors, in any memory.
//
// Reference is the device that defines the results: each op by its own Run. Package devicetest holds every
// other device to it. A device in host memory builds on HostMemory and HostVector.
package device
