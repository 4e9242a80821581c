package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/eventstore/journal/offline"
)

// damagedData is a data folder with a core log that has a flipped bit in its second segment, and a whole usage log.
const damagedData = "testdata/damaged-data"

func TestSalvagedLogsAreWholeAndSayWhatWasLost(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.CopyFS(data, os.DirFS(damagedData)); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(data, "log-salvaged")
	code, printed, stderr := runCommand(t, nil, "lieudit log salvage --data "+data+" --out "+out)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, words := range []string{
		"at position 4735: CRC does not match",
		"from position 4695 on; of it 6 events of 4 streams can still be read, from 2026-11-21 12:46 to 2026-11-21 12:56",
		"florac mende", "account-florac account-mende keys locations-mende", filepath.Join(out, "core", offline.LostName),
		"none: the log is whole", "lieudit projections rebuild --all",
	} {
		if !strings.Contains(printed, words) {
			t.Errorf("salvage prints no %q:\n%s", words, printed)
		}
	}
	moves := 0
	for line := range strings.Lines(printed) { // as it says, the new log is put in the old one's place
		if words := strings.Fields(line); len(words) == 3 && words[0] == "mv" {
			moves++
			if err := os.Rename(words[1], words[2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if moves != 2 {
		t.Errorf("%d moves are printed, want 2:\n%s", moves, printed)
	}
	if code, printed, stderr := runCommand(t, nil, "lieudit log verify --data "+data); code != 0 {
		t.Errorf("in place: exit %d, %s%s", code, printed, stderr)
	}
}

func TestSalvageOfOneLogWritesIntoTheFolderItself(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "node")
	code, printed, stderr := runCommand(t, nil, "lieudit log salvage --json --log "+damagedData+"/log/core --out "+out)
	var reports []struct {
		Nouveau    string
		Evenements int
		Dommage    struct{ Position uint64 }
		Comptes    []string `json:"comptes_touches"`
	}
	if err := json.Unmarshal([]byte(printed), &reports); code != 0 || err != nil || len(reports) != 1 {
		t.Fatalf("exit %d, %v: %s%s", code, err, printed, stderr)
	}
	if r := reports[0]; r.Nouveau != out || r.Evenements != 8 || r.Dommage.Position != 4735 || strings.Join(r.Comptes, " ") != "florac mende" {
		t.Errorf("salvaged %+v", r)
	}
	if code, printed, _ := runCommand(t, nil, "lieudit log verify --log "+out); code != 0 || !strings.Contains(printed, "whole") {
		t.Errorf("exit %d: %s", code, printed)
	}
}

func TestSalvageOfAWholeLogAsksForNothingToBeMoved(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	code, printed, stderr := runCommand(t, nil, "lieudit log salvage --log "+damagedData+"/log/usage --out "+out)
	if code != 0 || !strings.Contains(printed, "Nothing is damaged") || strings.Contains(printed, "mv ") {
		t.Errorf("exit %d, %s%s; want that nothing has to be moved", code, printed, stderr)
	}
}

func TestSalvageFailsWhereNoLogCanBeMade(t *testing.T) {
	t.Parallel()
	first, empty := t.TempDir(), t.TempDir()
	if err := os.CopyFS(first, os.DirFS(damagedData+"/log/core")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(first, "0000000000000000.log")); err != nil {
		t.Fatal(err)
	}
	for log, want := range map[string]string{first: "first segment of " + first + " cannot be read", empty: "there is no log in " + empty} {
		code, printed, stderr := runCommand(t, nil, "lieudit log salvage --log "+log+" --out "+filepath.Join(t.TempDir(), "out"))
		if code != 1 || !strings.Contains(stderr, want) || strings.Contains(printed, "mv ") {
			t.Errorf("exit %d, %q, %q; want %q", code, printed, stderr, want)
		}
	}
}

func TestNodeRefusesADamagedLogWithTheCommandThatSavesTheRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(damagedData+"/log/core")); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{"0000000000000000.idx", "0000000000001000.idx"} { // without them the start reads all segments
		if err := os.Remove(filepath.Join(dir, index)); err != nil {
			t.Fatal(err)
		}
	}
	code, _, stderr := runCommand(t, nil, "lieudit node --listen 127.0.0.1:0 --data "+dir)
	if want := "lieudit log salvage --log " + dir + " --out " + dir + "-salvaged"; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %q; want %q", code, stderr, want)
	}
}
