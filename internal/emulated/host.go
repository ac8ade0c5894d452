//go:build linux && amd64

package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// emulate runs a program with arguments and returns its exit status.
func emulate(machine string, args []string) (int, error) {
	work, err := os.MkdirTemp("", "emulated-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	cd := filepath.Join(work, "cd")
	if err := os.Mkdir(cd, 0o755); err != nil {
		return 0, err
	}
	for _, name := range []string{"linux", "isolinux.bin", "ldlinux.c32"} {
		content, err := os.ReadFile(filepath.Join(machine, name))
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(cd, name), content, 0o644); err != nil {
			return 0, err
		}
	}
	config := "default linux\nprompt 0\nlabel linux\nkernel linux\nappend initrd=ramdisk " + kernelOptions + "\n"
	if err := os.WriteFile(filepath.Join(cd, "isolinux.cfg"), []byte(config), 0o644); err != nil {
		return 0, err
	}
	if err := ramDisk(filepath.Join(cd, "ramdisk"), dir, args); err != nil {
		return 0, fmt.Errorf("RAM disk: %w", err)
	}
	image := filepath.Join(work, "cd.iso")
	c := exec.Command("xorriso", "-as", "mkisofs", "-quiet", "-o", image, "-b", "isolinux.bin", "-c", "boot.cat",
		"-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", cd)
	if out, err := c.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("xorriso: %w\n%s", err, out)
	}
	return run(work, machine, image)
}

// kernelOptions skip slow drivers, and Linux's warnings about a processor that does not exist.
const kernelOptions = "rdinit=/init console=ttyS0 loglevel=1 nokaslr mitigations=off acpi=off nosmp lsm=capability"

// run starts the machine and copies the output of its serial port until it ends.
func run(work, machine, image string) (int, error) {
	settings := fmt.Sprintf(`display_library: nogui
cpu: model=corei7_skylake_x, add_features="amx,amx_bf16,avx512bf16", ips=100000000
memory: guest=1024, host=1024
romimage: file=%[1]s/bios
vgaromimage: file=%[1]s/vgabios
ata0-master: type=cdrom, path=%[2]s, status=inserted
boot: cdrom
clock: sync=none
com1: enabled=1, mode=file, dev=/dev/fd/3
log: %[3]s/log
panic: action=fatal
error: action=report
info: action=ignore
`, machine, image, work)
	if err := os.WriteFile(filepath.Join(work, "bochsrc"), []byte(settings), 0o644); err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	c := exec.Command(filepath.Join(machine, "bochs"), "-q", "-f", filepath.Join(work, "bochsrc"))
	c.Dir, c.ExtraFiles = work, []*os.File{w}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return 0, err
	}
	w.Close()
	status := -1
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		line = strings.ReplaceAll(line, "\r", "")
		if _, after, ok := strings.Cut(line, exited); ok {
			if status, err = strconv.Atoi(strings.TrimSpace(after)); err != nil {
				status = -1
			}
			c.Process.Kill()
			break
		}
		os.Stdout.WriteString(line)
		if err != nil {
			break
		}
	}
	c.Wait() // its status says nothing
	if status < 0 {
		log, _ := os.ReadFile(filepath.Join(work, "log"))
		return 0, fmt.Errorf("the machine ended before its program did; its log ends:\n%s", log[max(0, len(log)-2000):])
	}
	return status, nil
}

// ramDisk writes a cpio archive, in the format newc, with the files that the machine needs.
func ramDisk(name, dir string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	disk := &archive{w: bufio.NewWriter(f), made: map[string]bool{}}
	j := job{Args: append([]string{program}, args[1:]...), Dir: dir, Env: []string{"HOME=/tmp", "TMPDIR=/tmp"}}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "RNA_") || strings.HasPrefix(v, "ONLINERNA_") || strings.HasPrefix(v, "GO") {
			j.Env = append(j.Env, v)
		}
	}
	disk.file("/init", self)
	disk.file(program, args[0])
	disk.entry(jobFile, 0o100644, j.encode())
	filepath.WalkDir(filepath.Join(dir, "testdata"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			disk.file(path, path)
		}
		return nil
	})
	disk.entry("/TRAILER!!!", 0, nil)
	if disk.err != nil {
		return disk.err
	}
	return disk.w.Flush()
}

// archive is a cpio archive.
type archive struct {
	w     *bufio.Writer
	made  map[string]bool // folders
	count int
	err   error
}

func (a *archive) file(name, from string) {
	text, err := os.ReadFile(from)
	if err != nil && a.err == nil {
		a.err = err
	}
	for i, c := range name {
		if folder := name[:i]; c == '/' && i > 0 && !a.made[folder] {
			a.made[folder] = true
			a.entry(folder, 0o040755, nil)
		}
	}
	a.entry(name, 0o100755, text)
}

func (a *archive) entry(name string, mode int, text []byte) {
	name = strings.TrimPrefix(name, "/") + "\x00"
	a.count++
	n, _ := fmt.Fprintf(a.w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s",
		a.count, mode, 0, 0, 1, 0, len(text), 0, 0, 0, 0, len(name), 0, name)
	a.w.WriteString("\x00\x00\x00"[:-n&3])
	a.w.Write(text)
	a.w.WriteString("\x00\x00\x00"[:-len(text)&3])
}
