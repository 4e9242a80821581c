package event_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/event"
)

// visitPersonal calls visit for every personal text in v. It fails for a kind of value that it does not know: a personal text
// could hide there.
func visitPersonal(t *testing.T, v reflect.Value, visit func(reflect.Value)) {
	t.Helper()
	switch v.Interface().(type) {
	case event.Personal:
		visit(v)
		return
	case time.Time:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			visitPersonal(t, v.Field(i), visit)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			visitPersonal(t, v.Index(i), visit)
		}
	case reflect.Map, reflect.Pointer, reflect.Interface:
		t.Errorf("%s could hold a personal text that this test does not find", v.Type())
	}
}

// countPersonal counts the personal texts in an event.
func countPersonal(t *testing.T, e event.Event) (n int) {
	t.Helper()
	visitPersonal(t, reflect.ValueOf(e), func(reflect.Value) { n++ })
	return n
}

func TestEveryTypeWithPersonalTextIsAPersonalEvent(t *testing.T) {
	t.Parallel()
	found := 0
	for _, e := range event.All() {
		if n := countPersonal(t, newFilledEvent(e)); n > 0 != e.HasPersonal {
			t.Errorf("%s holds %d personal texts, is a PersonalEvent: %v", e.Name, n, e.HasPersonal)
		} else if n > 0 {
			found++
		}
	}
	if found != 8 {
		t.Errorf("%d types hold personal text, want 8", found)
	}
}

func TestPersonalTextsAreMappedInACopy(t *testing.T) {
	t.Parallel()
	for _, e := range event.All() {
		in := newFilledEvent(e)
		calls := 0
		out, err := event.MapPersonal(in, func(event.Personal) (event.Personal, error) { calls++; return "hidden", nil })
		if err != nil || calls != countPersonal(t, in) {
			t.Errorf("%s: %d of %d texts mapped, %v", e.Name, calls, countPersonal(t, in), err)
			continue
		}
		visitPersonal(t, reflect.ValueOf(out), func(v reflect.Value) {
			if v.String() != "hidden" {
				t.Errorf("%s: %q is not mapped", e.Name, v)
			}
		})
		if !cmp.Equal(in, newFilledEvent(e)) {
			t.Errorf("%s: the event itself became %+v", e.Name, in)
		}
		got, err := event.MapPersonal(in, func(p event.Personal) (event.Personal, error) { return p, nil })
		if err != nil || !cmp.Equal(got, in) {
			t.Errorf("%s: mapped to itself it is %+v, %v", e.Name, got, err)
		}
	}
}

func TestEmptyPersonalTextsAreNotMapped(t *testing.T) {
	t.Parallel()
	fail := func(event.Personal) (event.Personal, error) { return "", errors.New("called for an empty text") }
	for _, e := range []event.Event{event.AccountOpened{}, event.SitesChanged{}, event.SyncStaged{Rows: []event.SiteRow{{SiteID: "s"}}}} {
		got, err := event.MapPersonal(e, fail)
		if err != nil || !cmp.Equal(got, e) {
			t.Errorf("%T: got %+v, %v", e, got, err)
		}
	}
}

func TestAnErrorOnOnePersonalTextFailsTheEvent(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, e := range event.All() {
		in := newFilledEvent(e)
		for n := range countPersonal(t, in) {
			calls := 0
			out, err := event.MapPersonal(in, func(p event.Personal) (event.Personal, error) {
				if calls++; calls == n+1 {
					return "", refused
				}
				return p, nil
			})
			if !errors.Is(err, refused) || out != nil {
				t.Errorf("%s, text %d: got %+v, %v, want the error alone", e.Name, n, out, err)
			}
		}
	}
}
