//go:build !linux && !darwin

package clock

import "time"

// sleptTime is 0: on Windows package time measures elapsed time with a clock that continues while the machine sleeps. On
// other systems a sleep of more than MaxJump looks like a jump.
func sleptTime() time.Duration { return 0 }

// currentBoot returns no id: after a restart, the program believes the wall clock.
func currentBoot() (id string, age time.Duration) { return "", 0 }
