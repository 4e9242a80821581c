package locations

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/commands"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
)

func TestCommandsDecide(t *testing.T) {
	t.Parallel()
	opening := func(code string) commands.Decision[State] {
		return func(s *State) commands.Result {
			return openReferential(s, tinyPlan, event.ReferentialOpened{Code: code, Name: "N"})
		}
	}
	renaming := func(code string, name event.Personal) commands.Decision[State] {
		return func(s *State) commands.Result {
			toOpen, result := renameReferential(s, code, name, openedName{})
			if toOpen != nil { // this state's names are in clear
				_, result = renameReferential(s, code, name, openedName{sealed: *toOpen, text: *toOpen})
			}
			return result
		}
	}
	toggling := func(action, code, id string) commands.Decision[State] {
		return func(s *State) commands.Result {
			return buildInline(toggle{account: "a", code: code, externalID: id, action: action, limit: tinyPlan}.decide(s))
		}
	}
	archiving := func(s *State) commands.Result {
		return buildInline(deactivateAllSites(s, s.referentials["r"], "a", tinyPlan), nil)
	}
	changed := func(w event.SiteWriteSummary, rows ...event.SiteRow) []event.Event {
		w.Referential, w.Capacity, w.Ceiling = "r", 10, 11
		return []event.Event{event.SitesChanged{SiteWriteSummary: w, Rows: rows}}
	}
	opened := func(code string) event.Event { return event.ReferentialOpened{Code: code, Name: "N"} }
	archived := event.ReferentialArchived{Code: "r"}
	one, off := sitesChanged(createdRow("x", contentWithPosition("A"))), sitesChanged(deactivatedRow("x", 2))
	lost := sitesChanged(createdRow("x", contentWithAddress("A", "nowhere")))
	for _, c := range []struct {
		rule   string
		given  *State
		decide commands.Decision[State]
		want   []event.Event
		err    error
	}{
		{"a referential is opened", given(), opening("n"), []event.Event{opened("n")}, nil},
		{"the cap of referentials has no tolerance", given(opened("o")), opening("n"), nil, refusal.ReferentialsOverCapacity.With(refusal.Details{Active: 2, Ceiling: 2})},
		{"an archived referential frees its slot", given(opened("o"), archived), opening("n"), []event.Event{opened("n")}, nil},
		{"a code is taken once", given(), opening("r"), nil, refusal.ReferentialCodeTaken},
		{"a code is taken for ever", given(archived), opening("r"), nil, refusal.ReferentialCodeTaken},
		{"the cap is looked at before the code", given(opened("o")), opening("r"), nil, refusal.ReferentialsOverCapacity.With(refusal.Details{Active: 2, Ceiling: 2})},

		{"a referential is renamed", given(), renaming("r", "S"), []event.Event{event.ReferentialRenamed{Code: "r", Before: "R", Name: "S"}}, nil},
		{"the same name changes nothing", given(event.ReferentialRenamed{Code: "r", Name: "S"}), renaming("r", "S"), nil, nil},
		{"an archived referential keeps its name", given(archived), renaming("r", "S"), nil, refusal.ReferentialArchived},
		{"an unknown referential has no name", given(), renaming("n", "S"), nil, ErrUnknownReferential},

		{"a site is deactivated", given(one), toggling("deactivate", "r", "x"), changed(event.SiteWriteSummary{Action: "deactivate", Deactivated: 1, ActiveBefore: 1, AccountActive: 1}, deactivatedRow("x", 2)), nil},
		{"a site is deactivated once", given(one, off), toggling("deactivate", "r", "x"), nil, nil},
		{"an unknown site is not found", given(one), toggling("deactivate", "r", "y"), nil, ErrUnknownSite},
		{"a site of an archived referential stays", given(one, archived), toggling("deactivate", "r", "x"), nil, refusal.ReferentialArchived},
		{"a site of an unknown referential is not found", given(one), toggling("deactivate", "n", "x"), nil, ErrUnknownReferential},
		{"a site is reactivated", given(one, off), toggling("reactivate", "r", "x"), changed(event.SiteWriteSummary{Action: "reactivate", Reactivated: 1, ActiveAfter: 1}, siteRow("x", event.SiteReactivated, 3, nil)), nil},
		{"a lost site is lost when it is reactivated", given(lost, off), toggling("reactivate", "r", "x"), changed(event.SiteWriteSummary{Action: "reactivate", Reactivated: 1, ActiveAfter: 1}, unlocatedRow(siteRow("x", event.SiteReactivated, 3, nil))), nil},
		{"an active site is not reactivated", given(one), toggling("reactivate", "r", "x"), nil, nil},
		{"a reactivation needs room", given(one, off, createdSites(11)), toggling("reactivate", "r", "x"), nil, refusal.SitesOverCapacity.With(refusal.Details{Active: 11, Capacity: 10, Ceiling: 11})},
		{"a site of an archived referential does not come back", given(one, off, archived), toggling("reactivate", "r", "x"), nil, refusal.ReferentialArchived},

		{"an archived referential's sites are deactivated", given(createdSites(2), sitesChanged(deactivatedRow("s00", 2))), archiving, changed(event.SiteWriteSummary{Action: "archive", Deactivated: 1, ActiveBefore: 1, AccountActive: 1}, deactivatedRow("s01", 2)), nil},
		{"an empty referential has none to deactivate", given(), archiving, nil, nil},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			result := c.decide(c.given)
			got, err := result.Events(), result.Err()
			if !sameError(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// buildInline returns the result of a change that needs no staging.
func buildInline(c siteChanges, err error) commands.Result {
	if err != nil {
		return commands.Refuse(err)
	}
	events, err := (&stager{locations: &Locations{limits: DefaultEventLimits}}).buildEvents(context.Background(), c)
	if err != nil {
		return commands.Fail(err)
	}
	return commands.Append(events...)
}
