//go:build !linux

package mappedfile

import "os"

// waitForWriteback does nothing where the system has no such call.
func waitForWriteback(*os.File, int64, int64) {}
