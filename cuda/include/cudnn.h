/*
 * The part of cuDNN that package cuda calls: its version, which "rna devices" prints.
 * See cuda.h.
 */
#ifndef ONLINERNA_CUDNN_H
#define ONLINERNA_CUDNN_H
#include <stdlib.h>
#ifdef __cplusplus
extern "C" {
#endif
size_t cudnnGetVersion(void);
#ifdef __cplusplus
}
#endif
#endif
