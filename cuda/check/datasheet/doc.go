// Package datasheet is cards on paper: of their data sheets, without a card, a driver or a library of NVIDIA's. In place of those the program
// gets functions that take every call and do nothing: memory is addresses, kernels are names, and the clock goes on by what the work that is
// given to the card takes at the limits of the data sheet. So the device for nets runs as it does on the card, chooses as it would if the
// data sheet were true, and tells what it gives to it.
package datasheet
