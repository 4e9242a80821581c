package terminal_test

import (
	"bytes"
	"testing"

	"lieudit/cmd/terminal"
)

func TestAnErrorMovesNoCursor(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	terminal.Terminal{Name: "lieudit", Err: &printed}.PrintError("made by \x1b[2J\rx\nand restored")
	if got, want := printed.String(), "lieudit: made by \ufffd[2J\ufffdx\n         and restored\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
