package harness

import (
	"errors"
	"os/exec"
)

// The servers of this package are started by a shell, which Windows lacks; these functions only let the package compile.

type credential struct{}

func serverUser(string) (*credential, error) { return nil, nil }

func startApart(*exec.Cmd, *credential) {}

// Suspend is not possible on Windows.
func (c *Postgres) Suspend() error { return errors.ErrUnsupported }

// Resume is not possible on Windows.
func (c *Postgres) Resume() error { return errors.ErrUnsupported }
