//go:build unix

package harness

import "syscall"

// CanSuspend reports whether Suspend is possible on this system.
const CanSuspend = true

// Suspend stops the process with SIGSTOP: its connections stay open, and it answers nothing. Resume lets it continue. Kill ends it all the same.
func (p *Process) Suspend() error { return p.Signal(syscall.SIGSTOP) }

// Resume continues the process after Suspend.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }
