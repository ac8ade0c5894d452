// Package imaging decodes JPEG and PNG to the 8-bit pixels that PIL gives and resamples them as torchvision does.
package imaging
