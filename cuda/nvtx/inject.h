#include <stdint.h>

int nvtx_attach(const char *path);
void nvtx_push(const char *name);
void nvtx_pop(void);
void nvtx_name_thread(uint32_t thread, const char *name);
void nvtx_name_stream(void *stream, const char *name);
