package cache

import (
	"os"
	"testing"
	"time"
)

// One at a time makes a file, and leaves nothing beside it.
func TestAlone(t *testing.T) {
	folder := t.TempDir()
	done := Alone(folder, "x")
	second := make(chan bool)
	go func() {
		done := Alone(folder, "x")
		_, there := Read(folder, "x")
		done()
		second <- there
	}()
	time.Sleep(100 * time.Millisecond)
	Write(folder, "x", []byte("made"))
	done()
	if !<-second {
		t.Error("the second did not wait for the first")
	}
	if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	Alone("", "x")()
	Alone("/dev/null/no", "x")()
}
