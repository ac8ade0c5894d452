// An image is what the stand-in's NVRTC gives for a cubin: this header, then a shared object.
#pragma once
#include <stdint.h>

struct SimHeader {
	char magic[8];       // SIMCUBIN
	uint64_t identity;   // of the compiler's text and flags, so that old images are found out
	uint64_t bytes;      // of the shared object that follows
};
static const char simMagic[9] = "SIMCUBIN";

// simIdentity hashes what images depend on beside their source.
uint64_t simIdentity();
const char *simDeviceText();   // device.h
const char *simFlags();        // of g++
