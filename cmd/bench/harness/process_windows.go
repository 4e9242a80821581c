package harness

import "errors"

// CanSuspend reports whether Suspend is possible on this system.
const CanSuspend = false

// Suspend is not possible on Windows.
func (p *Process) Suspend() error { return errors.ErrUnsupported }

// Resume is not possible on Windows.
func (p *Process) Resume() error { return errors.ErrUnsupported }
