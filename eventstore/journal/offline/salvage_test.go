package offline_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal/offline"
)

// damageRow is one kind of damage to a log of at least five segments. spoil returns where the log must be reported damaged,
// or noDamage.
type damageRow struct {
	spoil     func(t *testing.T, dir string, last int) eventstore.Position
	destroyed int  // how many events may be unreadable at most
	hasNoLog  bool // not even the first segment can be read
}

const noDamage = ^eventstore.Position(0)

func segmentBase(n int) eventstore.Position { return eventstore.Position(n * smallSegmentSize) }

// allOf is the most events that one whole segment can lose.
const allOf = smallSegmentSize / 64

func damageRows() map[string]damageRow {
	return map[string]damageRow{
		"bit of an older event": {destroyed: 1, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			return flipBitOfFrame(t, dir, 2, 4)
		}},
		"bit of the first event": {destroyed: 1, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			return flipBitOfFrame(t, dir, 0, 1)
		}},
		"bit of the newest event": {destroyed: 1, spoil: func(t *testing.T, dir string, last int) eventstore.Position {
			return flipBitOfFrame(t, dir, last, -2)
		}},
		"bit of a mark": {spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			return flipBitOfFrame(t, dir, 3, 0)
		}},
		"sectors zeroed": {destroyed: allOf, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			frames := findFrames(t, dir, 2)
			overwrite(t, filepath.Join(dir, segmentName(2)), frames[3], make([]byte, 2048))
			return segmentBase(2) + eventstore.Position(frames[3])
		}},
		"older segment cut at a frame": {destroyed: allOf, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			frames := findFrames(t, dir, 1)
			truncate(t, filepath.Join(dir, segmentName(1)), frames[4])
			return segmentBase(1) + eventstore.Position(frames[4])
		}},
		"older segment cut in a frame": {destroyed: allOf, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			frames := findFrames(t, dir, 1)
			truncate(t, filepath.Join(dir, segmentName(1)), frames[5]-3)
			return segmentBase(1) + eventstore.Position(frames[4])
		}},
		"newest segment cut behind its end": {spoil: func(t *testing.T, dir string, last int) eventstore.Position {
			truncate(t, filepath.Join(dir, segmentName(last)), smallSegmentSize-1)
			return segmentBase(last+1) - 1
		}},
		"newest segment emptied": {destroyed: allOf, spoil: func(t *testing.T, dir string, last int) eventstore.Position {
			truncate(t, filepath.Join(dir, segmentName(last)), 0)
			return segmentBase(last)
		}},
		"newest segment missing": {destroyed: allOf, spoil: func(t *testing.T, dir string, last int) eventstore.Position {
			remove(t, filepath.Join(dir, segmentName(last)))
			return segmentBase(last)
		}},
		"older segment missing": {destroyed: allOf, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			remove(t, filepath.Join(dir, segmentName(2)))
			return segmentBase(2)
		}},
		"older segment and all indexes missing": {destroyed: allOf, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			indexes, _ := filepath.Glob(filepath.Join(dir, "*.idx"))
			for _, path := range append(indexes, filepath.Join(dir, segmentName(2))) {
				remove(t, path)
			}
			return segmentBase(2)
		}},
		"first segment missing": {destroyed: allOf, hasNoLog: true, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			remove(t, filepath.Join(dir, segmentName(0)))
			return 0
		}},
		"older segment all zeros": {destroyed: allOf, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			overwrite(t, filepath.Join(dir, segmentName(2)), 0, make([]byte, smallSegmentSize))
			return segmentBase(2) + 64 // the header is restored, and no mark follows
		}},
		"older segment of another log": {destroyed: allOf, spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			b, err := os.ReadFile(filepath.Join(newLogFolder(t, 120), segmentName(2)))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, filepath.Join(dir, segmentName(2)), 0, b)
			return segmentBase(2)
		}},
		"header of an older segment": {spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			overwrite(t, filepath.Join(dir, segmentName(2)), 0, make([]byte, 64))
			return noDamage
		}},
		"header of the first segment": {spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			flipBit(t, filepath.Join(dir, segmentName(0)), 3)
			return noDamage
		}},
		"index": {spoil: func(t *testing.T, dir string, _ int) eventstore.Position {
			flipBit(t, filepath.Join(dir, strings.Replace(segmentName(1), ".log", ".idx", 1)), 80)
			return noDamage
		}},
		"nothing": {spoil: func(*testing.T, string, int) eventstore.Position { return noDamage }},
	}
}

func TestSalvageKeepsAllBeforeTheDamageAndNamesWhatItCouldReadBehindIt(t *testing.T) {
	t.Parallel()
	for name, row := range damageRows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, dst := newLogFolder(t, 120), filepath.Join(t.TempDir(), "salvaged")
			logID, whole := readLog(t, src)
			last := countSegments(t, src) - 1
			damage := row.spoil(t, src, last)
			before := hashFiles(t, src)

			s, err := offline.SalvageLog(t.Context(), src, dst)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(before, hashFiles(t, src)) {
				t.Error("the damaged log was changed")
			}
			got := noDamage
			if s.Damage != nil {
				got = s.Damage.Position
			}
			if got != damage {
				t.Errorf("damage is reported at %d (%v), want %d", got, s.Damage, damage)
			}
			kept := 0
			if s.HasLog == row.hasNoLog {
				t.Fatalf("HasLog is %v", s.HasLog)
			} else if s.HasLog {
				kept = checkSalvagedLog(t, dst, s, logID.String(), whole)
			}
			if want := countWholeAppends(whole, damage); kept != want {
				t.Errorf("the log holds %d events, want the %d before the damage", kept, want)
			}
			if lost := checkLost(t, dst, s, whole[kept:]); lost < len(whole)-kept-row.destroyed {
				t.Errorf("%d events behind the damage are named, want at least %d of %d", lost, len(whole)-kept-row.destroyed, len(whole)-kept)
			}
		})
	}
}

// Verify and copy find the damage at the same position. If salvage only restores a header, they refuse the log too.
func TestVerifyAndCopyRefuseEveryDamage(t *testing.T) {
	t.Parallel()
	for name, row := range damageRows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := newLogFolder(t, 120)
			want := row.spoil(t, src, countSegments(t, src)-1)
			v, verifyErr := offline.VerifyLog(t.Context(), src, nil)
			_, copyErr := offline.CopyLog(t.Context(), src, filepath.Join(t.TempDir(), "copy"))
			for what, err := range map[string]error{"verify": verifyErr, "copy": copyErr} {
				var corrupt *eventstore.CorruptError
				switch {
				case want == noDamage && !strings.HasPrefix(name, "header"):
					if err != nil {
						t.Errorf("%s says %v", what, err)
					}
				case !errors.As(err, &corrupt):
					t.Errorf("%s says %v, want the damage", what, err)
				case want != noDamage && !strings.Contains(name, "all zeros") && corrupt.Position != want:
					t.Errorf("%s says %v, want position %d", what, err, want)
				}
			}
			if isNamed := len(v.Indexes) > 0; verifyErr == nil && isNamed != (name == "index") {
				t.Errorf("verify names the indexes %q", v.Indexes)
			}
		})
	}
}

func TestVerifyCountsAWholeLogAndTellsItsProgress(t *testing.T) {
	t.Parallel()
	src := newLogFolder(t, 120)
	var done, total int64
	v, err := offline.VerifyLog(t.Context(), src, func(d, of int64) { done, total = d, of })
	if err != nil {
		t.Fatal(err)
	}
	_, whole := readLog(t, src)
	n := countSegments(t, src)
	if v.Events != len(whole) || v.Segments != n || done != int64(v.Last.Position) || total < int64(n*smallSegmentSize) {
		t.Errorf("verified %+v at %d of %d; want %d events in %d segments", v, done, total, len(whole), n)
	}
}

// checkSalvagedLog opens a salvaged log: it must begin like the whole one, and verify. It returns how many events it holds.
func checkSalvagedLog(t *testing.T, dir string, s offline.Salvaged, wantID string, whole []string) int {
	t.Helper()
	if v, err := offline.VerifyLog(t.Context(), dir, nil); err != nil || v.Contents != s.Contents || len(v.Indexes) > 0 {
		t.Errorf("the salvaged log is %+v, %v; want %+v", v, err, s.Contents)
	}
	gotID, got := readLog(t, dir)
	if gotID.String() != wantID || s.Events != len(got) {
		t.Errorf("salvaged log %s of %d events, want %s and %d", gotID, len(got), wantID, s.Events)
	}
	if len(got) > len(whole) || !slices.Equal(got, whole[:len(got)]) {
		t.Errorf("the %d events differ from what was written", len(got))
	}
	return len(got)
}

// checkLost compares the events in the file of lost ones with those that were written. It returns how many there are.
func checkLost(t *testing.T, dir string, s offline.Salvaged, written []string) int {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, offline.LostName))
	if errors.Is(err, os.ErrNotExist) && len(s.Lost) == 0 {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var lines []string
	for in := bufio.NewScanner(f); in.Scan(); {
		lines = append(lines, formatLostLine(t, in.Bytes()))
	}
	for _, line := range lines {
		if !slices.Contains(written, line) {
			t.Errorf("lost event %.200s was not written so", line)
		}
	}
	if s.LostEvents() != len(lines) {
		t.Errorf("%d events are said to be lost, the file has %d", s.LostEvents(), len(lines))
	}
	return len(lines)
}

// formatLostLine formats a line of the file as readLog formats an event.
func formatLostLine(t *testing.T, b []byte) string {
	t.Helper()
	var e struct {
		Position               uint64
		Revision               int64
		Stream, ID, Type, Time string
		Metadata, Data         json.RawMessage
	}
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	data := string(e.Data)
	if strings.HasPrefix(data, `"`) {
		decoded, err := base64.StdEncoding.DecodeString(strings.Trim(data, `"`))
		if err != nil {
			t.Fatal(err)
		}
		data = string(decoded)
	}
	return fmt.Sprintf("%d %s@%d %s %s %s %s %s", e.Position, e.Stream, e.Revision, e.ID, e.Type, e.Time, e.Metadata, data)
}

// countWholeAppends counts the events of the appends that end before a position. Every append has two.
func countWholeAppends(whole []string, damage eventstore.Position) (n int) {
	for _, line := range whole {
		var position eventstore.Position
		if _, err := fmt.Sscan(line, &position); err == nil && position < damage {
			n++
		}
	}
	return n - n%2
}

// findFrames returns where the frames of a segment begin, by the description of the format.
func findFrames(t *testing.T, dir string, n int) (all []int64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, segmentName(n)))
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(64); at+40 <= int64(len(b)); {
		size := int64(binary.LittleEndian.Uint32(b[at+4:]))
		if size == 0 {
			break
		}
		all = append(all, at)
		at += size
	}
	return all
}

// flipBitOfFrame damages frame i of segment n, counted from the end when i is negative, and returns its position.
func flipBitOfFrame(t *testing.T, dir string, n, i int) eventstore.Position {
	t.Helper()
	frames := findFrames(t, dir, n)
	if i < 0 {
		i += len(frames)
	}
	flipBit(t, filepath.Join(dir, segmentName(n)), frames[i]+30)
	return segmentBase(n) + eventstore.Position(frames[i])
}

func overwrite(t *testing.T, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// countSegments counts the segments that a closed log needs: it removes one that the journal may have made ahead.
func countSegments(t *testing.T, dir string) int {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d segments, %v; want at least 5", len(paths), err)
	}
	if n := len(paths) - 1; len(findFrames(t, dir, n)) == 0 {
		remove(t, paths[n])
		return n
	}
	return len(paths)
}

// hashFiles returns the hash of every file of a folder.
func hashFiles(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][32]byte{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = sha256.Sum256(b)
	}
	return all
}
