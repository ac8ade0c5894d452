package driver

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorTexts(t *testing.T) {
	cause := &Error{Call: "cuMemAlloc", Detail: "1.0 GiB", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY",
		Text: "out of memory"}
	if got, want := cause.Error(), "cuda: cuMemAlloc (1.0 GiB): CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"; got !=
		want {
		t.Errorf("%q, want %q", got, want)
	}
	m := error(&MemoryError{Cause: cause, Asked: 3 << 29, Free: 1 << 20, Total: 80 << 30, Used: 1000})
	if got, want := m.Error(), "cuda: out of memory: asked for 1.5 GiB, 1.0 MiB of 80.0 GiB are free, this context "+
		"holds 1000 bytes (CUDA_ERROR_OUT_OF_MEMORY)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	inside := &MemoryError{Cause: &Error{Call: "cudnnCreate", Code: 4004, Name: "FULL"}, Free: 1 << 20, Total: 80 << 30,
		Used: 1000}
	if got, want := inside.Error(),
		"cuda: out of memory: 1.0 MiB of 80.0 GiB are free, this context holds 1000 bytes: cuda: cudnnCreate: FULL "+
			"(4004)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	inside.Host = true
	if got, want := inside.Error(), "cuda: out of memory of the host: cuda: cudnnCreate: FULL (4004)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var e *Error
	if !errors.Is(m, ErrOutOfMemory) || errors.Is(m, ErrLost) || !errors.As(m, &e) {
		t.Error("a MemoryError is not what it is")
	}
	none := &NoDeviceError{Asked: 2, Devices: []Info{{Name: "A"}, {Ordinal: 1, Name: "B"}}}
	if got, want := none.Error(), "cuda: no GPU 2, there are: 0 (A), 1 (B)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&NoDeviceError{}).Error(); !strings.Contains(got, "lists none") {
		t.Errorf("%q", got)
	}
	for n, want := range map[int64]string{1023: "1023 bytes", 1 << 10: "1.0 KiB", 1<<40 + 1<<39: "1.5 TiB",
		1 << 55: "32768.0 TiB"} {
		if got := Size(n); got != want {
			t.Errorf("size %q, want %q", got, want)
		}
	}
	for code, lost := range map[int]bool{1: false, 2: false, 701: false, 214: true, 226: true, 700: true, 716: true,
		719: true, 720: false, 721: true, 999: true} {
		if e := (&Error{Code: code, Name: "CUDA_ERROR_X"}); e.lost() != lost {
			t.Errorf("code %d lost: %v", code, e.lost())
		}
	}
	if (&Error{Code: 999, Name: "NVRTC_ERROR_X"}).lost() {
		t.Error("an error of NVRTC loses the context")
	}
}
