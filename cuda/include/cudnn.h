/*
 * The part of cuDNN 9 that package cuda calls, without its backend API: its version and handles.
 * See cuda.h.
 */
#ifndef ONLINERNA_CUDNN_H
#define ONLINERNA_CUDNN_H
#include <stdlib.h>
#include "cuda.h"
typedef struct cudnnContext *cudnnHandle_t;
typedef int cudnnStatus_t;
enum
{
	CUDNN_STATUS_SUCCESS = 0
};
typedef enum
{
	CUDNN_DATA_FLOAT = 0,
	CUDNN_DATA_DOUBLE = 1,
	CUDNN_DATA_HALF = 2,
	CUDNN_DATA_BFLOAT16 = 9
} cudnnDataType_t;
typedef enum
{
	CUDNN_CONVOLUTION = 0,
	CUDNN_CROSS_CORRELATION = 1
} cudnnConvolutionMode_t;
#ifdef __cplusplus
extern "C" {
#endif
size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream streamId);
#ifdef __cplusplus
}
#endif
#endif
