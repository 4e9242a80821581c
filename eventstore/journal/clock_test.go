package journal_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/journal"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// appendAndReadTime appends an event and returns the time that the log gave it.
func appendAndReadTime(t *testing.T, j *journal.Journal) time.Time {
	t.Helper()
	id := uuid.New()
	if _, err := j.Append(t.Context(), "a-1", eventstore.Any, []eventstore.ProposedEvent{{ID: id, Type: "happened", Data: []byte("{}"), Metadata: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	for e, err := range j.ReadStream(t.Context(), "a-1", eventstore.End, eventstore.Backward) {
		if err != nil || e.ID != id {
			t.Fatal(e.ID, err)
		}
		return e.Time
	}
	t.Fatal("nothing was appended")
	return time.Time{}
}

func TestAJumpOfTheClockIsNotStamped(t *testing.T) {
	t.Parallel()
	var wall, elapsed atomic.Int64
	machine := clock.Sources{
		Wall:    func() time.Time { return noon.Add(time.Duration(wall.Load())) },
		Elapsed: func() time.Duration { return time.Duration(elapsed.Load()) },
	}
	j := openJournal(t, t.TempDir(), journal.Options{SegmentSize: smallSegmentSize, Logger: discardLogger(),
		Clock: clock.New(clock.Options{Sources: machine, Log: discardLogger()}).Now})
	for _, set := range []time.Duration{0, 40 * day, -40 * day, 0} {
		wall.Store(elapsed.Add(int64(time.Minute)) + int64(set))
		want := noon.Add(time.Duration(elapsed.Load()))
		if at := appendAndReadTime(t, j); !at.Equal(want) {
			t.Errorf("with the clock set by %v an event has the time %v, want %v", set, at, want)
		}
	}
}

// Times follow the clock, but do not fall when it is set back a little. A time stamped by a clock that was far ahead does not
// hold the log's time there.
func TestTimesFallOnlyBehindOneThatIsFarAhead(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	dir, now := t.TempDir(), func() time.Time { return noon.Add(time.Duration(ahead.Load())) }
	open := func() *journal.Journal {
		return openJournal(t, dir, journal.Options{SegmentSize: smallSegmentSize, Clock: now, Logger: discardLogger()})
	}
	j := open()
	var got []time.Duration // after noon
	for _, at := range []time.Duration{0, time.Second, -clock.MaxJump + time.Second, 2 * time.Second, 40 * day, 40*day - clock.MaxJump, 3 * time.Second, 2 * time.Second} {
		ahead.Store(int64(at))
		got = append(got, appendAndReadTime(t, j).Sub(noon))
	}
	want := []time.Duration{0, time.Second, time.Second, 2 * time.Second, 40 * day, 40 * day, 3 * time.Second, 3 * time.Second}
	if !slices.Equal(got, want) {
		t.Errorf("events have the times %v, want %v", got, want)
	}
	ahead.Store(int64(40 * day))
	appendAndReadTime(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(time.Minute)) // left by an earlier program
	j = open()
	if at := j.TimeAtOpen(); !at.Equal(noon.Add(40 * day)) {
		t.Errorf("its last event was recorded at %v", at)
	}
	if at := appendAndReadTime(t, j); !at.Equal(now()) {
		t.Errorf("an event has the time %v, want %v", at, now())
	}
	if _, err := j.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
