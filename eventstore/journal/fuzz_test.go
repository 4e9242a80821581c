package journal_test

import (
	"fmt"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// FuzzRecovery puts any bytes at any place of a log's files. The log opens or says why not; it never yields what was
// not written, and what it yields once opened it yields again after another start.
func FuzzRecovery(f *testing.F) {
	f.Add(uint8(0), uint32(64), []byte{0, 0, 0, 0})
	f.Add(uint8(1), uint32(16448), []byte{1})
	f.Add(uint8(2), uint32(70), make([]byte, 300))
	f.Add(uint8(3), uint32(0), []byte("LIEUDITX"))
	var logs []*powerLossFS
	f.Fuzz(func(t *testing.T, file uint8, at uint32, b []byte) {
		if logs == nil {
			logs = []*powerLossFS{newWrittenLog(t, 1)}
		}
		m := logs[0].copyWithFlippedBit("", 0, 0)
		names, _ := m.Names()
		target := m.files[names[int(file)%len(names)]]
		if len(target.cached) > 0 {
			copy(target.cached[int(at)%len(target.cached):], b)
		}
		first, err := readChecked(t, m)
		if err != nil {
			return
		}
		second, err := readChecked(t, m)
		if err != nil || fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("opened once it holds %d events, opened again %d, %v", len(first), len(second), err)
		}
	})
}

// readChecked opens a log and reads it; what it yields must be as it was written.
func readChecked(t *testing.T, m *powerLossFS) (got []string, err error) {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: smallSegmentSize, FS: m, Logger: discardLogger()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = j.Close() }()
	for s, err := range j.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		if err != nil {
			return got, err
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		n := len(got)
		if want := fmt.Sprint(n/2, " "); n%2 == 0 && string(s.Event.Data[:len(want)]) != want || n%2 == 1 && string(s.Event.Data) != "second" {
			t.Fatalf("event %d is %q", n, s.Event.Data)
		}
		got = append(got, string(s.Event.Data))
	}
	return got, nil
}
