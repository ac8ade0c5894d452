package zoo_test

import (
	"math"
	"strings"
	"testing"

	"onlinerna/nn"
)

// TestSizes compares parameters, and multiplications and additions of an image in 10⁹ pairs, with those that
// torchvision gives for its weights.
func TestSizes(t *testing.T) {
	for name, want := range map[string]struct {
		params int
		pairs  float64
	}{
		"alexnet":            {61100840, 0.714},
		"efficientnet_b0":    {5288548, 0.386},
		"efficientnet_b1":    {7794184, 0.687},
		"efficientnet_b2":    {9109994, 1.088},
		"efficientnet_b3":    {12233232, 1.827},
		"efficientnet_b4":    {19341616, 4.394},
		"efficientnet_b5":    {30389784, 10.266},
		"efficientnet_b6":    {43040704, 19.068},
		"efficientnet_b7":    {66347960, 37.746},
		"efficientnet_v2_m":  {54139356, 24.582},
		"efficientnet_v2_s":  {21458488, 8.366},
		"mnasnet0_5":         {2218512, 0.104},
		"mnasnet0_75":        {3170208, 0.215},
		"mnasnet1_0":         {4383312, 0.314},
		"mnasnet1_3":         {6282256, 0.526},
		"mobilenet_v2":       {3504872, 0.301},
		"mobilenet_v3_large": {5483032, 0.217},
		"mobilenet_v3_small": {2542856, 0.057},
		"regnet_x_16gf":      {54278536, 15.941},
		"regnet_x_1_6gf":     {9190136, 1.603},
		"regnet_x_32gf":      {107811560, 31.736},
		"regnet_x_3_2gf":     {15296552, 3.177},
		"regnet_x_400mf":     {5495976, 0.414},
		"regnet_x_800mf":     {7259656, 0.8},
		"regnet_x_8gf":       {39572648, 7.995},
		"regnet_y_16gf":      {83590140, 15.912},
		"regnet_y_1_6gf":     {11202430, 1.612},
		"regnet_y_32gf":      {145046770, 32.28},
		"regnet_y_3_2gf":     {19436338, 3.176},
		"regnet_y_400mf":     {4344144, 0.402},
		"regnet_y_800mf":     {6432512, 0.834},
		"regnet_y_8gf":       {39381472, 8.473},
		"resnext101_32x8d":   {88791336, 16.414},
		"resnext101_64x4d":   {83455272, 15.46},
		"resnext50_32x4d":    {25028904, 4.23},
		"densenet121":        {7978856, 2.834},
		"densenet161":        {28681000, 7.728},
		"densenet169":        {14149480, 3.36},
		"densenet201":        {20013928, 4.291},
		"shufflenet_v2_x0_5": {1366792, 0.04},
		"shufflenet_v2_x1_0": {2278604, 0.145},
		"shufflenet_v2_x1_5": {3503624, 0.296},
		"shufflenet_v2_x2_0": {7393996, 0.583},
		"squeezenet1_0":      {1248424, 0.819},
		"squeezenet1_1":      {1235496, 0.349},
		"vgg11":              {132863336, 7.609},
		"vgg11_bn":           {132868840, 7.609},
		"vgg13":              {133047848, 11.308},
		"vgg13_bn":           {133053736, 11.308},
		"vgg16":              {138357544, 15.47},
		"vgg16_bn":           {138365992, 15.47},
		"vgg19":              {143667240, 19.632},
		"vgg19_bn":           {143678248, 19.632},
		"wide_resnet101_2":   {126886696, 22.753},
		"wide_resnet50_2":    {68883240, 11.398},
		"vit_b_16":           {86567656, 17.564},
		"vit_b_32":           {88224232, 4.409},
		"convnext_tiny":      {28589128, 4.456},
		"convnext_small":     {50223688, 8.684},
		"convnext_base":      {88591464, 15.355},
		"convnext_large":     {197767336, 34.361},
		"swin_t":             {28288354, 4.491},
		"swin_s":             {49606258, 8.741},
		"swin_b":             {87768224, 15.431},
		"maxvit_t":           {30919624, 5.558},
	} {
		m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Error(err)
			continue
		}
		flops, err := m.FLOPs()
		if n, pairs := m.NumParams(), float64(flops)/2e9; err != nil || n != want.params ||
			math.Abs(pairs-want.pairs) > .00051 {
			t.Errorf("%s: %d parameters, %.4f·10⁹ pairs, %v; want %d, %g", name, n, pairs, err, want.params, want.pairs)
		}
	}
}

// Each net has the fields that rna models prints, and takes another number of classes and of channels.
func TestArchitectures(t *testing.T) {
	for _, a := range nn.Architectures() {
		if a.Family == "" || a.Summary == "" || a.Reference == "" || (a.Mean == nil) != (a.Classes != 1000) {
			t.Errorf("%+v", a)
		}
		m, err := a.Model(nn.Config{Batch: 2, Classes: 7, Channels: 1, Dropout: .5, DropPath: .1})
		if err != nil {
			t.Error(err)
		} else if m.RandomCounter == nil && a.Dropout+a.DropPath > 0 {
			t.Errorf("%s has no random layer", a.Name)
		}
	}
}

// Inputs that do not fit are refused with the layer and its shapes.
func TestInputs(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want string
	}{
		"vgg16": {160, "layer avgpool: (1, 512, 5, 5) is not a multiple of 7×7 pixels, " +
			"which the linear layers take: choose an input size of 224"},
		"alexnet":       {32, "layer features.12: max_pool"},
		"squeezenet1_0": {8, "layer features.2: max_pool"},
		"resnet9":       {16, "layer pool: max_pool"},
		"swin_t":        {225, "images of 225×225 pixels: height and width must be multiples of 4: choose an input size of 224 or 228"},
		"vit_b_16":      {100, "images of 100×100 pixels: height and width must be multiples of 16: choose an input size of 96 or 112"},
		"maxvit_t":      {200, "images of 200×200 pixels: height and width must be multiples of 224: choose an input size of 224"},
	} {
		_, err := nn.Build(name, nn.Config{Batch: 1, Size: c.size})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s at %d pixels: %v, want …%s…", name, c.size, err, c.want)
		}
	}
}
