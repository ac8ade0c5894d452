// Package datasheet models cards by their data sheets, without a card, a driver or a library of NVIDIA's. It replaces
// these by functions that accept every call and do nothing: memory is addresses, kernels are names, and the clock
// advances by the work's time at the limits of the data sheet. So the device for nets runs as on the card, chooses as
// if the data sheet were true, and reports its work.
package datasheet
