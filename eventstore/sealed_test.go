package eventstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// personalTypes returns the catalog's types with personal texts. It looks at the JSON of an example, so that it does not
// depend on what the codec finds.
func personalTypes(t *testing.T) []event.Type {
	t.Helper()
	var lines []event.Type
	for _, line := range event.All() {
		if countInClear(t, exampleEvent(t, line, "Chez Zoé")) > 0 {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		t.Fatal("no event has a personal field")
	}
	return lines
}

// countInClear counts the example's personal texts in the JSON of an event.
func countInClear(t *testing.T, e event.Event) int {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "Chez Zoé")
}

// subjectOf is the subject whose key seals the personal texts of an example.
func subjectOf(line event.Type) string {
	if _, ok := reflect.Zero(line.GoType).Interface().(event.AccountBound); ok {
		return "text" // like all texts of an example
	}
	return eventstore.EntityID(streamOf(line))
}

func TestPersonalFieldsAreNeverInClear(t *testing.T) {
	t.Parallel()
	const secret = "Chez Zoé"
	for _, line := range personalTypes(t) {
		c, _ := newTestCodec()
		in := exampleEvent(t, line, secret)
		before := countInClear(t, in)
		p := encodeEvents(t, c, streamOf(line), in)[0]
		if bytes.Contains(p.Data, []byte(secret)) || bytes.Contains(p.Metadata, []byte(secret)) {
			t.Errorf("%s: in clear in %s", line.Name, p.Data)
		}
		if got := strings.Count(string(p.Data), "sealed.v1:"); got != before {
			t.Errorf("%s: %d personal texts sealed, want %d", line.Name, got, before)
		}
		if bytes.Equal(p.Data, encodeEvents(t, c, streamOf(line), in)[0].Data) {
			t.Errorf("%s: the same text is encrypted to the same bytes", line.Name)
		}
		if !cmp.Equal(in, exampleEvent(t, line, secret)) {
			t.Errorf("%s: encoding changed the event", line.Name)
		}
	}
}

func TestPersonalFieldIsEmptyOnceItsKeyIsDestroyed(t *testing.T) {
	t.Parallel()
	for _, line := range personalTypes(t) {
		c, vault := newTestCodec()
		p := encodeEvents(t, c, streamOf(line), exampleEvent(t, line, "Chez Zoé"))[0]
		if err := vault.DestroyKey(t.Context(), subjectOf(line)); err != nil {
			t.Fatal(err)
		}
		got, err := c.Decode(t.Context(), newRecordedEvent(streamOf(line), p))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(exampleEvent(t, line, ""), got); diff != "" {
			t.Errorf("%s: %s", line.Name, diff)
		}
		if _, err := c.Encode(t.Context(), streamOf(line), uuid.New(), eventstore.Metadata{}, []event.Event{exampleEvent(t, line, "again")}); !errors.Is(err, eventstore.ErrDestroyed) {
			t.Errorf("%s: encoded again: %v, want ErrDestroyed", line.Name, err)
		}
	}
}

var zoe = event.AccountOpened{Account: "a", Name: "Chez Zoé", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}

func TestPersonalFieldOpensInItsOwnStreamOnly(t *testing.T) {
	t.Parallel()
	c, vault := newTestCodec()
	p := encodeEvents(t, c, "account-a", zoe)[0]
	encodeEvents(t, c, "account-b", zoe)
	if e, err := c.Decode(t.Context(), newRecordedEvent("account-b", p)); err == nil {
		t.Errorf("under another key: got %v, want an error", e)
	}
	if e, err := c.Decode(t.Context(), newRecordedEvent("locations-a", p)); err == nil {
		t.Errorf("under the same key: got %v, want an error", e)
	}
	vault.err = errors.New("away")
	if e, err := c.Decode(t.Context(), newRecordedEvent("account-a", p)); !errors.Is(err, vault.err) {
		t.Errorf("vault away: got %v, %v, want its error", e, err)
	}
	if _, err := c.Encode(t.Context(), "account-a", uuid.New(), eventstore.Metadata{}, []event.Event{zoe}); !errors.Is(err, vault.err) {
		t.Errorf("vault away: encoded with %v, want its error", err)
	}
}

// The log records no erasure of such a field, so it must not read as erased.
func TestFieldWhoseKeyIsMissingOrAnotherIsUnreadable(t *testing.T) {
	t.Parallel()
	for _, line := range personalTypes(t) {
		for name, lose := range map[string]func(k *memoryVault, subject string){
			"missing": func(k *memoryVault, subject string) { delete(k.keys, subject) },
			"another": func(k *memoryVault, subject string) { k.keys[subject] = bytes.Repeat([]byte{9}, 32) },
		} {
			c, vault := newTestCodec()
			p := encodeEvents(t, c, streamOf(line), exampleEvent(t, line, "Chez Zoé"))[0]
			lose(vault, subjectOf(line))
			got, err := c.Decode(t.Context(), newRecordedEvent(streamOf(line), p))
			var why *eventstore.UnreadableError
			if !errors.Is(err, eventstore.ErrUnreadable) || !errors.As(err, &why) || why.Subject != subjectOf(line) {
				t.Errorf("%s, key %s: got %v, %v, want it unreadable", line.Name, name, got, err)
			}
		}
	}
}

func TestUnsealReturnsTheTextUntilTheKeyIsDestroyed(t *testing.T) {
	t.Parallel()
	c, _ := newTestCodec()
	p := encodeEvents(t, c, "account-a", zoe)[0]
	raw, err := event.Decode(p.Type, p.Data)
	if err != nil {
		t.Fatal(err)
	}
	name := raw.(event.AccountOpened).Name
	for _, want := range []event.Personal{"Chez Zoé", ""} {
		if got, err := c.Unseal(t.Context(), "account-a", name); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if err := c.DestroyKey(t.Context(), "account-a"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChangedPersonalFieldIsAnError(t *testing.T) {
	t.Parallel()
	c, _ := newTestCodec()
	p := encodeEvents(t, c, "account-a", zoe)[0]
	var fields map[string]any
	if err := json.Unmarshal(p.Data, &fields); err != nil {
		t.Fatal(err)
	}
	whole := fields["name"].(string)
	bad := []string{"Chez Zoé", whole[:len(whole)-1], whole[:len("sealed.v1:")+3], "sealed.v1:", whole + "A", "Sealed.v1:" + whole[10:]}
	for i := len("sealed.v1:"); i < len(whole); i++ {
		other := byte('A')
		if whole[i] == 'A' {
			other = 'B'
		}
		bad = append(bad, whole[:i]+string(other)+whole[i+1:])
	}
	for _, name := range bad {
		fields["name"] = name
		data, _ := json.Marshal(fields)
		if e, err := c.Decode(t.Context(), eventstore.RecordedEvent{Stream: "account-a", Type: p.Type, Data: data}); err == nil {
			t.Errorf("name %q: got %v, want an error", name, e)
		}
	}
}

func TestEmptyPersonalFieldNeedsNoKey(t *testing.T) {
	t.Parallel()
	c, vault := newTestCodec()
	vault.err = errors.New("away")
	p := encodeEvents(t, c, "account-a", event.AccountOpened{Account: "a", Anchor: zoe.Anchor})
	if e, err := c.Decode(t.Context(), newRecordedEvent("account-a", p[0])); err != nil {
		t.Errorf("got %v, %v", e, err)
	}
}
