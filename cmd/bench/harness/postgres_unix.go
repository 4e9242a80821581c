//go:build unix

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// credential is the user that a server runs as.
type credential = syscall.Credential

// serverUser returns the user that the server runs as, and makes that user the owner of dir. Postgres refuses to run as
// root, so a root process uses the user postgres. Any other process returns nil: the server runs as the same user.
func serverUser(dir string) (*credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, int(uid), int(gid))
}

// startApart makes a command start as the user, nil for that of this process, and in a process group of its own.
func startApart(cmd *exec.Cmd, user *credential) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Setpgid: true}
}

// Suspend stops every process of the server with SIGSTOP, so that it answers nothing. Resume lets them continue.
func (c *Postgres) Suspend() error { return c.signal(syscall.SIGSTOP) }

// Resume ends Suspend.
func (c *Postgres) Resume() error { return c.signal(syscall.SIGCONT) }

// signal sends a signal to the server and to the processes that it started: a suspended parent alone would leave its
// connections served.
func (c *Postgres) signal(s syscall.Signal) error {
	file, err := os.ReadFile(filepath.Join(c.dataDir(), "postmaster.pid"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(file), "\n")
	parent, err := strconv.Atoi(line)
	if err != nil {
		return err
	}
	if err := syscall.Kill(parent, s); err != nil { // the parent first: a stopped server starts no more processes
		return err
	}
	listed, err := exec.Command("ps", "-o", "pid=", "--ppid", line).Output()
	if err != nil {
		return fmt.Errorf("processes of postgres: %w", err)
	}
	for _, text := range strings.Fields(string(listed)) {
		if child, err := strconv.Atoi(text); err == nil {
			syscall.Kill(child, s) // it may have ended by now
		}
	}
	return nil
}
