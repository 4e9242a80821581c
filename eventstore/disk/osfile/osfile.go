// Package osfile holds the few calls on files that every system has in its own way: locks, the sync of a folder, files that
// can be renamed while they are open, and what an error means. Its constraint: a caller does not see which system it runs on.
//
// The functions are independent of each other; osfile_unix.go and osfile_windows.go have one form of each. gofrs/flock opens its
// files itself, and the callers here lock files that they read and write.
package osfile

import "errors"

// ErrHeld: a file is locked by another holder, in this process or another.
var ErrHeld = errors.New("file is locked by another holder")
