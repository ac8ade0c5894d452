//go:build soak && linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"
)

// TestSoakStrangers changes files of a finished run as a stranger might: by holes of gigabytes, texts for terminals and
// numbers out of range. Commands that read it take bounded memory, print no control characters and never panic.
// SOAK_KILLS and SOAK_SEED are those of TestSoak.
func TestSoakStrangers(t *testing.T) {
	seed := soakNumber(t, "SOAK_SEED", 1)
	s := &soak{T: t, Rand: rand.New(rand.NewPCG(uint64(seed), 2))}
	n := soakNumber(t, "SOAK_KILLS", 200) / 4
	whole := filepath.Join(t.TempDir(), "whole")
	if s.finish(whole, nil); t.Failed() {
		return
	}
	fmt.Printf("\n| a stranger's run has | runs | commands | ended well or with an error | most memory, MB |\n")
	fmt.Println("|-|-|-|-|-|")
	for _, way := range []struct {
		name string
		hurt func(path string)
	}{{"a hole of 8 GB in a file", s.hole}, {"texts for terminals", s.texts}, {"numbers out of range", s.numbers}} {
		commands, failed, most := 0, 0, int64(0)
		for range n {
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			names := []string{"config.json", "metrics.jsonl", "metrics.jsonl", "sessions.jsonl"}
			way.hurt(filepath.Join(dir, names[s.IntN(len(names))]))
			for _, args := range [][]string{
				{"runs", dir}, {"compare", dir, whole}, {"watch", dir}, {"verify", dir},
				{"report", dir, "--no-images", "-o", filepath.Join(dir, "page.html")},
				{"export-metrics", dir, "--to", "csv", "-o", filepath.Join(dir, "metrics.csv")},
			} {
				cmd, said := s.start(args...)
				cmd.Wait()
				commands++
				memory := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
				most = max(most, memory)
				if status := cmd.ProcessState.ExitCode(); status != 0 && status != 1 || memory > 700 || !plain(said.String()) {
					failed++
					t.Errorf("%s: %s: status %d, %d MB: %.500q", way.name, args[0], status, memory, said)
				}
			}
			os.RemoveAll(dir)
		}
		fmt.Printf("| %s | %d | %d | %d | %d |\n", way.name, n, commands, commands-failed, most)
	}
}

// plain reports whether a terminal takes a text as no command.
func plain(s string) bool {
	return !strings.Contains(s, "goroutine ") && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	})
}

// hole cuts a file anywhere and lengthens it to 8 GB.
func (s *soak) hole(path string) {
	st, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, s.Int64N(st.Size()+1))
	}
	if err == nil {
		err = os.Truncate(path, 8<<30)
	}
	if err != nil {
		s.Error(err)
	}
}

// texts puts texts for terminals in place of some strings, as JSON writes them or as they are.
func (s *soak) texts(path string) {
	list := []string{"\x1b]0;title\x07", "\x1b[8m\x1b[2J", "\u202egnp.exe", "a\rb\x7f\u009b1m", "\x1bP$q\x1b\\"}
	s.change(path, `"`, func() string {
		text := list[s.IntN(len(list))]
		if s.IntN(3) == 0 {
			return text
		}
		b, err := json.Marshal(text)
		if err != nil {
			s.Error(err)
		}
		return string(b[1 : len(b)-1])
	})
}

// numbers puts other numbers behind some colons.
func (s *soak) numbers(path string) {
	list := []string{"1e308", "-1", "9223372036854775807", "1e-320", "0", "null", "[]", "-0.5e9"}
	s.change(path, ":", func() string {
		if s.IntN(2) == 0 {
			return list[s.IntN(len(list))] + ","
		}
		return list[s.IntN(len(list))]
	})
}

// change inserts texts behind some places of a file with mark.
func (s *soak) change(path, mark string, text func() string) {
	b, err := os.ReadFile(path)
	if err != nil {
		s.Error(err)
		return
	}
	for range 1 + s.IntN(4) {
		parts := bytes.SplitAfter(b, []byte(mark))
		at := s.IntN(len(parts))
		parts[at] = append(bytes.Clone(parts[at]), text()...)
		b = bytes.Join(parts, nil)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		s.Error(err)
	}
}
