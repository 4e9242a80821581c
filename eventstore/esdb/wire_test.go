package esdb

import (
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// TestTimesAreWholeMicroseconds: the server stamps events to 100 ns. A read model keeps microseconds, so a list would have
// shown another opening time of an account than a read of its stream.
func TestTimesAreWholeMicroseconds(t *testing.T) {
	got := parseRecordedEvent(&streams.ReadResp_ReadEvent_RecordedEvent{Metadata: map[string]string{"created": "17648000001234567"}})
	if want := time.Date(2025, 12, 3, 22, 13, 20, 123456000, time.UTC); !got.Time.Equal(want) {
		t.Errorf("an event is recorded at %v, want %v", got.Time, want)
	}
}
