package extrapolate

import "testing"

// TestKerasStatistics finds BatchNorm's statistics among tensors that have numbers for names.
func TestKerasStatistics(t *testing.T) {
	c, err := Open("../statedict/testdata/keras/net.weights.h5", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := map[string]Role{
		"layers/batch_normalization/vars/1":   RunningMean, // a layer without scale
		"layers/batch_normalization/vars/2":   RunningVar,
		"layers/batch_normalization_1/vars/2": RunningMean,
		"layers/batch_normalization_1/vars/3": RunningVar,
	}
	for _, x := range c.Tensors {
		if own, _ := c.Lookup(x.Name); x.Role != want[x.Name] || own.Role != x.Role {
			t.Errorf("%s: %v and %v, want %v", x.Name, x.Role, own.Role, want[x.Name])
		}
	}
}
