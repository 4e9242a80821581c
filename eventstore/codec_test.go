package eventstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

func TestEveryEventIsDecodedAsItWasEncoded(t *testing.T) {
	t.Parallel()
	for _, line := range event.All() {
		t.Run(line.Name, func(t *testing.T) {
			c, _ := newTestCodec()
			in := exampleEvent(t, line, "Chez Zoé")
			got, err := c.Decode(t.Context(), newRecordedEvent(streamOf(line), encodeEvents(t, c, streamOf(line), in)[0]))
			if err != nil {
				t.Fatal(err)
			}
			want, _ := event.MapPersonal(event.Latest(in), func(p event.Personal) (event.Personal, error) {
				if text, ok := p.ClearText(); ok { // of an event in its first version
					return event.Personal(text), nil
				}
				return p, nil
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventIDsFollowFromTheCommandAndTheIndex(t *testing.T) {
	t.Parallel()
	c, _ := newTestCodec()
	many := make([]event.Event, 70_000)
	for i := range many {
		many[i] = event.AccountClosed{}
	}
	seen := map[uuid.UUID]int{}
	first, second := encodeEvents(t, c, "account-a", many...), encodeEvents(t, c, "account-a", many[:10]...)
	for i, p := range first {
		if j, twice := seen[p.ID]; twice {
			t.Fatalf("events %d and %d have the same id", i, j)
		}
		seen[p.ID] = i
	}
	for i, p := range second {
		if p.ID != first[i].ID {
			t.Errorf("event %d: got id %s, then %s", i, first[i].ID, p.ID)
		}
	}
	other, err := c.Encode(t.Context(), "account-a", uuid.New(), eventstore.Metadata{}, many[:1])
	if err != nil || other[0].ID == first[0].ID {
		t.Errorf("another command: got id %s, %v", other[0].ID, err)
	}
}

func TestLastEventHasTheEndMarkAndAllHaveTheMetadata(t *testing.T) {
	t.Parallel()
	c, _ := newTestCodec()
	want := eventstore.Metadata{CorrelationID: "c", CausationID: "d", Actor: "token:1", OnBehalfOf: "a", Reason: "r", EndOfAppend: true}
	batch, err := c.Encode(t.Context(), "account-a", uuid.New(), want, []event.Event{event.AgencyActivated{}, event.AccountClosed{}, event.AccountClosed{}})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range batch {
		want.EndOfAppend = i == len(batch)-1
		got, err := c.DecodeMetadata(t.Context(), newRecordedEvent("account-a", p), event.AccountClosed{})
		if err != nil || got != want {
			t.Errorf("event %d: got %+v, %v, want %+v", i, got, err, want)
		}
	}
	if batch, err := c.Encode(t.Context(), "account-a", uuid.New(), want, nil); err != nil || len(batch) != 0 {
		t.Errorf("no events: got %v, %v", batch, err)
	}
}

func TestEventThatIsNotInTheCatalogIsErrUnknownType(t *testing.T) {
	t.Parallel()
	c, _ := newTestCodec()
	_, err := c.Decode(t.Context(), eventstore.RecordedEvent{Stream: "account-a", Revision: 3, Type: "account.flown.v1", Data: []byte("{}")})
	if !errors.Is(err, event.ErrUnknownType) || !strings.HasPrefix(fmt.Sprint(err), "account-a@3: ") {
		t.Errorf("got %v, want ErrUnknownType at account-a@3", err)
	}
	_, err = c.Encode(t.Context(), "account-a", uuid.New(), eventstore.Metadata{}, []event.Event{uncataloguedEvent{}})
	if !errors.Is(err, event.ErrUnknownType) {
		t.Errorf("encoded: %v, want ErrUnknownType: nobody could read it back", err)
	}
	if e, err := c.Decode(t.Context(), eventstore.RecordedEvent{Stream: "account-a", Type: "account.closed.v1", Data: []byte("{")}); err == nil {
		t.Errorf("cut JSON: got %v, want an error", e)
	}
}

type uncataloguedEvent struct{ Name event.Personal }

func (uncataloguedEvent) EventType() string { return "account.unlisted.v1" }

func TestMissingMetadataIsZeroAndDamagedMetadataAnError(t *testing.T) {
	t.Parallel()
	if got, err := (eventstore.RecordedEvent{}).DecodeMetadata(); err != nil || got != (eventstore.Metadata{}) {
		t.Errorf("none: got %+v, %v", got, err)
	}
	r := eventstore.RecordedEvent{Stream: "account-a", Revision: 3, Metadata: []byte("[]")}
	if got, err := r.DecodeMetadata(); err == nil || !strings.Contains(err.Error(), "account-a@3") {
		t.Errorf("damaged: got %+v, %v, want an error that names the event", got, err)
	}
}

func TestEntityIDFollowsTheFirstDash(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{"account-42": "42", "account-le-lieu-dit": "le-lieu-dit", "account-": "", "account": "", "": "", "-x": "x"} {
		if got := eventstore.EntityID(stream); got != want {
			t.Errorf("%q: got %q, want %q", stream, got, want)
		}
	}
}
