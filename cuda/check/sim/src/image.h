// An image replaces a cubin in the stand-in's NVRTC: this header, a shared object, and the source with its options.
#pragma once
#include <stdint.h>

struct SimHeader {
	char magic[8];       // SIMCUBIN
	uint64_t identity;   // of the compiler's text and flags, to detect old images
	uint64_t bytes;      // of the shared object that follows
	uint64_t source;     // bytes of the options of NVRTC, a line, and of the source
};
static const char simMagic[9] = "SIMCUBIN";

// simIdentity hashes the dependencies of images other than their source.
uint64_t simIdentity();
const char *simDeviceText();   // device.h
const char *simFlags();        // of g++
