package locations

import (
	"errors"
	"fmt"
	"reflect"

	gocmp "github.com/google/go-cmp/cmp"

	"lieudit/schemas/locations"
)

func (x *modelTest) checkError(step string, got, want error) {
	x.log = append(x.log, fmt.Sprintf("%s: %v", step, want))
	if !sameError(got, want) || got != nil && reflect.TypeOf(rootCause(got)) != reflect.TypeOf(rootCause(want)) {
		x.Errorf("%s: got error %v, want %v", step, got, want)
	}
}

func rootCause(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// compare holds both instances, and a fresh one, to the model.
func (x *modelTest) compare() {
	instances := []*Locations{x.instances[0], x.instances[1], x.newInstance(x.store)}
	var states []*State
	for _, l := range instances {
		f, err := l.CountLocations(x.Context(), "a")
		if want := x.model.count(); err != nil || f != want {
			x.Errorf("got %+v, %v, want %+v", f, err, want)
		}
		l.handler.View(x.Context(), "a", func(s *State) { states = append(states, s) })
	}
	for _, folded := range states[:2] {
		if !reflect.DeepEqual(folded, states[2]) {
			x.Errorf("folded afresh (-afresh +folded):\n%s", gocmp.Diff(states[2], folded, gocmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
	for code, r := range x.model.referentials {
		if got, want := len(states[2].referentials[code].sites), len(r.sites); got != want {
			x.Errorf("%s: got %d sites, want %d", code, got, want)
		}
		for id := range r.sites {
			got, err := instances[2].readSite(x.Context(), "a", code, id)
			if err != nil {
				x.Fatal(err)
			}
			x.checkSite(code, id, got)
		}
	}
}

// checkSite holds a site as it is checkSite to the model's.
func (x *modelTest) checkSite(code, id string, got locations.Site) {
	s := x.model.referentials[code].sites[id]
	want := locations.Site{ID: siteID("a", code, id), Referential: code, ExternalID: id, Active: s.active, Version: s.version}
	want.Content, want.Source, want.Score = s.ShownContent()
	want.Created, want.Modified, want.Deactivated = got.Created, got.Modified, got.Deactivated
	if !reflect.DeepEqual(want, got) {
		x.Errorf("site (-want +got):\n%s", gocmp.Diff(want, got))
	}
	if got.Created.IsZero() || got.Modified.Before(got.Created) || got.Active != got.Deactivated.IsZero() {
		x.Errorf("got times %v, %v, %v", got.Created, got.Modified, got.Deactivated)
	}
}
