package zoo

import "onlinerna/nn"

// timm's names of torchvision's nets. Its files have other names of tensors, and config.json says how they take images.
func init() {
	for alias, name := range map[string]string{
		"swin_tiny_patch4_window7_224":  "swin_t",
		"swin_small_patch4_window7_224": "swin_s",
		"swin_base_patch4_window7_224":  "swin_b",
		"mobilenetv2_100":               "mobilenet_v2",
		"mnasnet_050":                   "mnasnet0_5",
		"mnasnet_075":                   "mnasnet0_75",
		"mnasnet_100":                   "mnasnet1_0",
		"regnetx_004_tv":                "regnet_x_400mf",
		"regnetx_008":                   "regnet_x_800mf",
		"regnetx_016":                   "regnet_x_1_6gf",
		"regnetx_032":                   "regnet_x_3_2gf",
		"regnetx_080":                   "regnet_x_8gf",
		"regnetx_160":                   "regnet_x_16gf",
		"regnetx_320":                   "regnet_x_32gf",
		"regnety_004":                   "regnet_y_400mf",
		"regnety_008_tv":                "regnet_y_800mf",
		"regnety_016":                   "regnet_y_1_6gf",
		"regnety_032":                   "regnet_y_3_2gf",
		"regnety_080_tv":                "regnet_y_8gf",
		"regnety_160":                   "regnet_y_16gf",
		"regnety_320":                   "regnet_y_32gf",
		"regnety_1280":                  "regnet_y_128gf",
	} {
		nn.Alias(alias, name)
	}
}
