package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/leveltest"
)

func TestFlagsNameOneLevel(t *testing.T) {
	for line, want := range map[string]options{
		"":             {leveltest.Usual, 1},
		"-quick":       {leveltest.Quick, 1},
		"-all -busy":   {leveltest.Whole, busyFactor},
		"-quick -busy": {leveltest.Quick, busyFactor},
	} {
		if got, err := parseOptions(strings.Fields(line), io.Discard); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", line, got, err, want)
		}
	}
	for _, line := range []string{"-quick -all", "all", "-fast"} {
		if got, err := parseOptions(strings.Fields(line), io.Discard); err == nil {
			t.Errorf("%q: got %v, want an error", line, got)
		}
	}
}

// Only the whole level may need a C compiler, and every other level must report what it left out.
func TestWhatALevelNeedsAndLeavesOut(t *testing.T) {
	for _, level := range []leveltest.Level{leveltest.Quick, leveltest.Usual, leveltest.Whole} {
		for _, s := range steps(level, time.Minute) {
			if (s.race || strings.Contains(strings.Join(s.command, " "), "-race")) && level != leveltest.Whole {
				t.Errorf("%s: the step %s is built with the race detector", level, s.name)
			}
		}
		if (leftOut[level] == "") != (level == leveltest.Whole) {
			t.Errorf("%s leaves out %q", level, leftOut[level])
		}
	}
}
