package event_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/event"
)

// An event with two versions is written in the first if the log's format requires it, and read in the latest. Nothing is lost,
// and texts that were in clear are marked.
func TestEventsInTheirFirstVersionAreReadInTheLatestWithTheirTextsMarkedAsClear(t *testing.T) {
	t.Parallel()
	var replaced []string
	for _, e := range event.All() {
		if e.Latest() == e.Name {
			continue
		}
		replaced = append(replaced, e.Name)
		latest, _ := event.Lookup(e.Latest())
		if !latest.HasPersonal || latest.MinFormat() != event.SealedTextFormat || e.MinFormat() != event.FirstFormat || e.Sentence != latest.Sentence || e.French != latest.French {
			t.Errorf("%s and %s: got %+v and %+v", e.Name, latest.Name, e, latest)
		}
		typed := newFilledEvent(latest)
		earlier := event.Earlier(typed)
		if earlier.EventType() != e.Name || reflect.TypeOf(earlier) != e.GoType {
			t.Errorf("%s in its first version is %s", latest.Name, earlier.EventType())
		}
		data, err := json.Marshal(earlier)
		if err != nil {
			t.Fatal(err)
		}
		read, err := event.Decode(e.Name, data)
		if err != nil {
			t.Fatal(err)
		}
		cleared, err := event.MapPersonal(read, func(p event.Personal) (event.Personal, error) {
			text, ok := p.ClearText()
			if !ok {
				t.Errorf("%s: %q is not marked as clear", e.Name, p)
			}
			return event.Personal(text), nil
		})
		if diff := cmp.Diff(typed, cleared); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", e.Name, err, diff)
		}
	}
	slices.Sort(replaced)
	want := []string{"account.publishable-key-issued.v1", "account.secret-key-issued.v1", "locations.referential-opened.v1", "locations.referential-renamed.v1", "token.issued.v1"}
	if diff := cmp.Diff(want, replaced); diff != "" {
		t.Error(diff)
	}
}

func TestATextThatLooksMarkedIsNotEmptyAndAnEmptyOneIsNotMarked(t *testing.T) {
	t.Parallel()
	if got := event.Clear(""); got != "" {
		t.Errorf("got %q", got)
	}
	if text, ok := event.Clear("clear.v1:x").ClearText(); text != "clear.v1:x" || !ok {
		t.Errorf("got %q, %v", text, ok)
	}
}
