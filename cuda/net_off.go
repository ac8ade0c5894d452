//go:build !gpu

package cuda

import "onlinerna/nn/device"

// OpenNet returns [ErrNotBuilt] in this build.
func OpenNet(ordinal int, o NetOptions) (device.Device, error) { return nil, ErrNotBuilt }
