package eventstore_test

import (
	"strings"
	"testing"

	"lieudit/eventstore"
)

func TestMetadataOfAnEventWithoutEnvelopeIsZeroAndOfADamagedOneAnError(t *testing.T) {
	t.Parallel()
	if got, err := (eventstore.RecordedEvent{}).DecodeMetadata(); err != nil || got != (eventstore.Metadata{}) {
		t.Errorf("none: got %+v, %v", got, err)
	}
	r := eventstore.RecordedEvent{Stream: "account-a", Revision: 3, Metadata: []byte("[]")}
	if got, err := r.DecodeMetadata(); err == nil || !strings.Contains(err.Error(), "account-a@3") {
		t.Errorf("damaged: got %+v, %v, want an error that names the event", got, err)
	}
}

func TestTheEntityIDIsWhatFollowsTheFirstDash(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{"account-42": "42", "account-le-lieu-dit": "le-lieu-dit", "account-": "", "account": "", "": "", "-x": "x"} {
		if got := eventstore.EntityID(stream); got != want {
			t.Errorf("%q: got %q, want %q", stream, got, want)
		}
	}
}
