#include "image.h"

#include <string.h>

#include <initializer_list>

// device.h itself, for libnvrtc to put before a source.
asm(R"(
	.section .rodata
simDeviceStart:
	.incbin "device.h"
	.byte 0
	.previous
)");
extern "C" const char simDeviceStart[] __attribute__((visibility("hidden")));

const char *simDeviceText() { return simDeviceStart; }

const char *simFlags() {
	return "-std=c++17 -O2 -fPIC -shared -fvisibility=hidden -fno-strict-aliasing -x c++ "
#ifdef SIM_SANITIZE
	       SIM_SANITIZE
#endif
		;
}

uint64_t simIdentity() {
	uint64_t h = 0xcbf29ce484222325;
	for (const char *text : {simDeviceText(), simFlags()})
		for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h;
}
