package locations

import (
	"errors"
	"fmt"
	"reflect"

	gocmp "github.com/google/go-cmp/cmp"

	"lieudit/schemas/site"
)

func (x *trial) same(step string, got, want error) {
	x.log = append(x.log, fmt.Sprintf("%s: %v", step, want))
	if !sameError(got, want) || got != nil && reflect.TypeOf(unwrapped(got)) != reflect.TypeOf(want) {
		x.Errorf("%s: got error %v, want %v", step, got, want)
	}
}

func unwrapped(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// compare holds both instances, and a fresh one, to the model.
func (x *trial) compare() {
	desks := []*Locations{x.desks[0], x.desks[1], x.desk(x.store)}
	var states []*State
	for _, l := range desks {
		f, err := l.Figures(x.Context(), "a")
		if want := x.model.figures(); err != nil || f != want {
			x.Errorf("got %+v, %v, want %+v", f, err, want)
		}
		l.desk.View(x.Context(), "a", func(s *State) { states = append(states, s) })
	}
	for _, folded := range states[:2] {
		if !reflect.DeepEqual(folded, states[2]) {
			x.Errorf("folded afresh (-afresh +folded):\n%s", gocmp.Diff(states[2], folded, gocmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
	for code, r := range x.model.refs {
		if got, want := len(states[2].groups[code].sites), len(r.sites); got != want {
			x.Errorf("%s: got %d sites, want %d", code, got, want)
		}
		for id := range r.sites {
			got, err := desks[2].show(x.Context(), "a", code, id)
			if err != nil {
				x.Fatal(err)
			}
			x.shown(code, id, got)
		}
	}
}

// shown holds a site as it is shown to the model's.
func (x *trial) shown(code, id string, got site.Site) {
	s := x.model.refs[code].sites[id]
	want := site.Site{ID: siteID("a", code, id), Referential: code, ExternalID: id, Active: s.active, Version: s.version}
	want.Content, want.Source, want.Score = s.Show()
	want.Created, want.Modified, want.Deactivated = got.Created, got.Modified, got.Deactivated
	if !reflect.DeepEqual(want, got) {
		x.Errorf("site (-want +got):\n%s", gocmp.Diff(want, got))
	}
	if got.Created.IsZero() || got.Modified.Before(got.Created) || got.Active != got.Deactivated.IsZero() {
		x.Errorf("got times %v, %v, %v", got.Created, got.Modified, got.Deactivated)
	}
}
