package chaos

import (
	"errors"
	"time"
)

// The faults below are not possible on Windows; these functions only let the package compile.

func usedSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

func (r *run) stallNode(time.Duration) error { return errors.ErrUnsupported }
