// Package osfile holds the few file operations that differ between systems: locks, the sync of a folder, files that can be
// renamed while they are open, and the meaning of an error. Callers do not depend on the system they run on.
//
// The functions are independent of each other; osfile_unix.go and osfile_windows.go each have one version. gofrs/flock opens
// its files itself, whereas the callers here lock files that they read and write.
package osfile

import "errors"

// ErrHeld: a file is locked by another holder, in this process or another.
var ErrHeld = errors.New("file is locked by another holder")
