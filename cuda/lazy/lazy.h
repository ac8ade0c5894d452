#include <stddef.h>

void *lazy_open(const char *path, char *why, size_t n);
const char *lazy_path(void *handle);
int lazy_init(void *handle, int *version);
int lazy_oldest(void *handle);
const char *lazy_error_name(void *handle, int code);
size_t lazy_cudart(void *cudnn);
void lazy_publish(int library, void *handle);
int lazy_provide(void *lookup);
