package node_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
)

func TestAnAppendIsMadeOnlyWhereItIsExpected(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, x := range []struct {
		name     string
		held     int // events in the stream before
		expected esdb.ExpectedRevision
		want     bool
	}{
		{"no stream, and there is none", 0, esdb.NoStream{}, true},
		{"no stream, but there is one", 1, esdb.NoStream{}, false},
		{"any, none", 0, esdb.Any{}, true},
		{"any, one", 1, esdb.Any{}, true},
		{"exists, none", 0, esdb.StreamExists{}, false},
		{"exists, one", 1, esdb.StreamExists{}, true},
		{"revision, at it", 3, esdb.Revision(2), true},
		{"revision, behind it", 2, esdb.Revision(2), false},
		{"revision, beyond it", 4, esdb.Revision(2), false},
		{"revision, none", 0, esdb.Revision(0), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			stream := "e-" + x.name
			if x.held > 0 {
				mustAppend(t, c, stream, esdb.NoStream{}, newEvents(x.held)...)
			}
			done, err := c.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: x.expected}, newEvents(2)...)
			if !x.want {
				if errorCode(err) != esdb.ErrorCodeWrongExpectedVersion {
					t.Fatalf("got %v, want a wrong version", err)
				}
				return
			}
			if err != nil || done.NextExpectedVersion != uint64(x.held)+1 || done.CommitPosition == 0 || done.CommitPosition != done.PreparePosition {
				t.Fatalf("got %+v, %v", done, err)
			}
		})
	}
}

func TestTheSameAppendAgainAddsNothing(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for i, expected := range []esdb.ExpectedRevision{esdb.NoStream{}, esdb.Any{}, esdb.Revision(1), esdb.StreamExists{}} {
		t.Run(fmt.Sprintf("%T", expected), func(t *testing.T) {
			t.Parallel()
			stream := fmt.Sprintf("again-%d", i)
			if i > 1 {
				mustAppend(t, c, stream, esdb.NoStream{}, newEvents(2)...)
			}
			batch := newEvents(3)
			first := mustAppend(t, c, stream, expected, batch...)
			mustAppend(t, c, stream, esdb.Any{}, newEvent("later"))
			if again := mustAppend(t, c, stream, expected, batch...); *again != *first {
				t.Errorf("got %+v, want %+v", again, first)
			}
			if got, want := len(revisions(t, c, stream)), int(first.NextExpectedVersion)+2; got != want {
				t.Errorf("%d events, want %d", got, want)
			}
		})
	}
}

func TestAnIDThatComesBackInAnotherAppendIsRefused(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	batch := newEvents(2)
	mustAppend(t, c, "reuse-1", esdb.NoStream{}, batch...)
	_, err := c.AppendToStream(t.Context(), "reuse-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, batch[0], newEvent("other"))
	if errorCode(err) != esdb.ErrorCodeWrongExpectedVersion {
		t.Errorf("behind the stream: got %v, want a wrong version", err)
	}
	_, err = c.AppendToStream(t.Context(), "reuse-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Revision(1)}, batch[0], newEvent("other"))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("at its end: got %v, want an invalid transaction", err)
	}
	if got := revisions(t, c, "reuse-1"); len(got) != 2 {
		t.Errorf("%d events, want 2", len(got))
	}
}

func TestWhatIsAppendedIsReadAsItWas(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	batch := []esdb.EventData{
		newEvent("plain"),
		{EventType: "empty", ContentType: esdb.ContentTypeJson},
		{EventType: "binary", ContentType: esdb.ContentTypeBinary, Data: []byte{0, 1, 0xff}, Metadata: []byte{0, 1, 2}},
		{EventType: "binary, no metadata", ContentType: esdb.ContentTypeBinary, Data: []byte("x")},
		{EventType: "marks 0", ContentType: esdb.ContentTypeJson, Data: []byte("{}"), Metadata: []byte{0, 'x'}},
		{EventType: "marks 1", ContentType: esdb.ContentTypeJson, Data: []byte("{}"), Metadata: []byte{1}},
		{EventType: "été \x01", ContentType: esdb.ContentTypeJson, Data: []byte("null")},
	}
	stream := "été-1 / ☃"
	mustAppend(t, c, stream, esdb.NoStream{}, batch...)
	got, err := readEvents(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{}, 100))
	if err != nil || len(got) != len(batch) {
		t.Fatalf("got %d events, %v", len(got), err)
	}
	for i, want := range batch {
		e := got[i]
		content := "application/octet-stream"
		if want.ContentType == esdb.ContentTypeJson {
			content = "application/json"
		}
		if e.EventType != want.EventType || e.ContentType != content || !bytes.Equal(e.Data, want.Data) || !bytes.Equal(e.UserMetadata, want.Metadata) {
			t.Errorf("got %q %s %q %q, want %+v", e.EventType, e.ContentType, e.Data, e.UserMetadata, want)
		}
		if e.StreamID != stream || e.EventNumber != uint64(i) || e.CreatedDate.IsZero() {
			t.Errorf("got %s@%d of %v", e.StreamID, e.EventNumber, e.CreatedDate)
		}
	}
}

func TestAnAppendOfTheGreatestSizeIsMadeAndALargerOneRefused(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	e := newEvent("big")
	e.Data = bytes.Repeat([]byte("x"), eventstore.MaxAppendBytes-len(e.EventType)-len(e.Metadata))
	mustAppend(t, c, "big-1", esdb.NoStream{}, e)
	got, err := readEvents(c.ReadStream(t.Context(), "big-1", esdb.ReadStreamOptions{}, 1))
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Data, e.Data) {
		t.Fatalf("read %d events, %v", len(got), err)
	}
	for _, more := range []int{1, 1 << 20, 4 << 20} {
		big := newEvent("big")
		big.Data = append(bytes.Clone(e.Data), make([]byte, more)...)
		if _, err := c.AppendToStream(t.Context(), "big-1", esdb.AppendToStreamOptions{}, big); err == nil {
			t.Errorf("%d bytes too many were taken", more)
		}
	}
	if got := revisions(t, c, "big-1"); len(got) != 1 {
		t.Errorf("%d events, want 1", len(got))
	}
}

func TestAnAppendOfThousandsStaysTogether(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	done := mustAppend(t, c, "many-1", esdb.NoStream{}, newEvents(2000)...)
	if done.NextExpectedVersion != 1999 {
		t.Fatalf("ends at %d, want 1999", done.NextExpectedVersion)
	}
	got, err := readEvents(c.ReadStream(t.Context(), "many-1", esdb.ReadStreamOptions{}, 5000))
	if err != nil || len(got) != 2000 {
		t.Fatalf("got %d events, %v", len(got), err)
	}
	for i, e := range got {
		if e.EventType != fmt.Sprintf("e%d", i) {
			t.Fatalf("event %d is %s", i, e.EventType)
		}
	}
	if last := got[1999].Position.Commit; last != done.CommitPosition {
		t.Errorf("committed at %d, last event at %d", done.CommitPosition, last)
	}
}

func TestOfConcurrentAppendsAtOneRevisionOneIsMade(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := map[uint64]int{}
	for range 8 {
		wg.Go(func() {
			for r := range uint64(20) {
				var expected esdb.ExpectedRevision = esdb.NoStream{}
				if r > 0 {
					expected = esdb.Revision(r - 1)
				}
				_, err := c.AppendToStream(t.Context(), "race-1", esdb.AppendToStreamOptions{ExpectedRevision: expected}, newEvent("e"))
				switch {
				case err == nil:
					mu.Lock()
					won[r]++
					mu.Unlock()
				case errorCode(err) != esdb.ErrorCodeWrongExpectedVersion:
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for r, n := range won {
		if n != 1 {
			t.Errorf("%d appends made at %d", n, r)
		}
	}
	if got, want := len(revisions(t, c, "race-1")), len(won); got != want {
		t.Errorf("%d events, %d appends made", got, want)
	}
}

func TestConcurrentAppendsToManyStreamsAreAllKept(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for range 25 {
				if _, err := c.AppendToStream(t.Context(), fmt.Sprintf("w-%d", w%4), esdb.AppendToStreamOptions{}, newEvents(2)...); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	all, err := readEvents(c.ReadAll(t.Context(), esdb.ReadAllOptions{}, 10_000))
	if err != nil || len(all) != 800 {
		t.Fatalf("got %d events, %v, want 800", len(all), err)
	}
	if !slices.IsSortedFunc(all, func(a, b *esdb.RecordedEvent) int { return int(a.Position.Commit) - int(b.Position.Commit) }) {
		t.Error("positions do not grow")
	}
}
