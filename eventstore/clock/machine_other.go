//go:build !linux && !darwin

package clock

import "time"

// sleptTime is 0: on Windows package time measures elapsed time with a clock that runs on while the machine sleeps. On other systems a
// sleep of more than MaxJump is taken for a jump.
func sleptTime() time.Duration { return 0 }

// currentBoot names no boot: a restart of the program begins with the clock as it stands.
func currentBoot() (id string, age time.Duration) { return "", 0 }
