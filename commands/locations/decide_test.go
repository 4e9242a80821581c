package locations

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lieudit/schemas/event"
	"lieudit/schemas/site"
)

type decision struct {
	rule   string
	given  *State
	batch  Batch
	want   event.SitesWritten // but for referential, action, capacity and ceiling
	rows   []event.SiteRow
	placed []Placement
	lost   []string
	placer town  // nil: mende
	err    error // of a dry run: Refused
}

func TestWriteDecides(t *testing.T) {
	t.Parallel()
	whole, confirmed, dry := Batch{Whole: true}, Batch{Whole: true, Confirmed: true}, Batch{Whole: true, DryRun: true}
	a, b := said("A"), said("B")
	one := had(created("x", a))
	gone := []event.Event{one, had(deactivated("x", 2))}
	placed := had(created("x", addressed("A", "1 rue")))
	lost := had(created("x", addressed("A", "nowhere")))
	found := town{"nowhere": {Lat: 1, Lon: 2, Score: 0.6}}
	byID := site.Content{Name: "A", IDBan: "ban-2"}
	shownByID, _, _ := stored(byID).Show()
	renamed := shownByID
	renamed.Name = "B"
	other := event.ReferentialOpened{Code: "o"}
	elsewhere := event.SitesChanged{SitesWritten: event.SitesWritten{Referential: "o"}, Rows: []event.SiteRow{created("x", a), created("y", a)}}
	for _, c := range []decision{
		{rule: "a new site is created", given: given(), batch: batchOf(Batch{}, "x", a),
			want: event.SitesWritten{Created: 1, After: 1}, rows: []event.SiteRow{created("x", a)}},
		{rule: "rows are in the order of their ids", given: given(), batch: batchOf(Batch{}, "y", a, "x", b),
			want: event.SitesWritten{Created: 2, After: 2}, rows: []event.SiteRow{created("x", b), created("y", a)}},
		{rule: "the same site is unchanged", given: given(one), batch: batchOf(whole, "x", a),
			want: event.SitesWritten{Unchanged: 1, Before: 1, After: 1, Active: 1}},
		{rule: "another content is an update", given: given(one), batch: batchOf(Batch{}, "x", b),
			want: event.SitesWritten{Updated: 1, Before: 1, After: 1, Active: 1}, rows: []event.SiteRow{row("x", event.SiteUpdated, 2, &b)}},
		{rule: "an inactive site comes back as it was", given: given(gone...), batch: batchOf(Batch{}, "x", a),
			want: event.SitesWritten{Reactivated: 1, After: 1}, rows: []event.SiteRow{row("x", event.SiteReactivated, 3, nil)}},
		{rule: "an inactive site comes back as another", given: given(gone...), batch: batchOf(Batch{}, "x", b),
			want: event.SitesWritten{Reactivated: 1, After: 1}, rows: []event.SiteRow{row("x", event.SiteReactivated, 3, &b)}},
		{rule: "a sync deactivates what it omits", given: given(some(4)), batch: sites(whole, 3),
			want: event.SitesWritten{Unchanged: 3, Deactivated: 1, Before: 4, After: 3, Active: 4}, rows: []event.SiteRow{deactivated("s03", 2)}},
		{rule: "a sync does not deactivate twice", given: given(gone...), batch: whole, want: event.SitesWritten{}},
		{rule: "an upsert omits nothing", given: given(some(4)), batch: sites(Batch{}, 1),
			want: event.SitesWritten{Unchanged: 1, Before: 4, After: 4, Active: 4}},
		{rule: "a sync of another referential is none of ours", given: given(other, elsewhere, one), batch: batchOf(whole, "x", a),
			want: event.SitesWritten{Unchanged: 1, Before: 1, After: 1, Active: 3}},

		{rule: "half of the sites may go", given: given(some(4)), batch: sites(whole, 2),
			want: event.SitesWritten{Unchanged: 2, Deactivated: 2, Before: 4, After: 2, Active: 4}, rows: []event.SiteRow{deactivated("s02", 2), deactivated("s03", 2)}},
		{rule: "more than half may not", given: given(some(3)), batch: sites(whole, 1), err: &ReductionError{3, 1}},
		{rule: "what is created does not make up for it", given: given(some(3)), batch: batchOf(whole, "n0", a, "n1", a, "n2", a), err: &ReductionError{3, 3}},
		{rule: "more than half may go when it is meant", given: given(some(1)), batch: confirmed,
			want: event.SitesWritten{Deactivated: 1, Before: 1, Active: 1}, rows: []event.SiteRow{deactivated("s00", 2)}},
		{rule: "the ceiling can be reached", given: given(some(10)), batch: sites(Batch{}, 11),
			want: event.SitesWritten{Created: 1, Unchanged: 10, Before: 10, After: 11, Active: 10}, rows: []event.SiteRow{created("s10", said("S"))}},
		{rule: "the ceiling cannot be passed", given: given(some(10)), batch: sites(Batch{}, 12), err: &SiteCapError{10, 10, 11}},
		{rule: "sites of all referentials count", given: given(other, elsewhere), batch: sites(Batch{}, 10), err: &SiteCapError{2, 10, 11}},
		{rule: "who is above the ceiling may update", given: given(some(20)), batch: batchOf(Batch{}, "s00", b),
			want: event.SitesWritten{Updated: 1, Before: 20, After: 20, Active: 20}, rows: []event.SiteRow{row("s00", event.SiteUpdated, 2, &b)}},
		{rule: "who is above the ceiling may swap", given: given(some(20)), batch: batchOf(sites(whole, 19), "n", b),
			want: event.SitesWritten{Created: 1, Unchanged: 19, Deactivated: 1, Before: 20, After: 20, Active: 20}, rows: []event.SiteRow{created("n", b), deactivated("s19", 2)}},
		{rule: "who is above the ceiling may not grow", given: given(some(20)), batch: sites(Batch{}, 21), err: &SiteCapError{20, 10, 11}},
		{rule: "a reactivation counts", given: given(some(11), had(deactivated("s00", 2)), had(created("n", a))), batch: sites(Batch{}, 1), err: &SiteCapError{11, 10, 11}},
		{rule: "the capacity is refused before the reduction", given: given(some(3)), batch: batchOf(whole, pairs(12)...), err: &SiteCapError{3, 10, 11}},
		{rule: "an archived referential takes no writes", given: given(event.ReferentialArchived{Code: "r"}), batch: sites(Batch{}, 20), err: ErrArchived},
		{rule: "an unknown referential is not found", given: new(State), batch: sites(Batch{}, 1), err: ErrUnknownReferential},

		{rule: "a dry run says what it would do", given: given(one), batch: batchOf(dry, "x", a, "y", addressed("B", "1 rue")),
			want: event.SitesWritten{Created: 1, Unchanged: 1, Placed: 1, Before: 1, After: 2, Active: 1},
			rows: []event.SiteRow{created("y", addressed("B", "1 rue"))}, placed: []Placement{{"y", 0.9}}},
		{rule: "a dry run says what it would be refused for", given: given(some(3)), batch: sites(dry, 1),
			want: event.SitesWritten{Unchanged: 1, Deactivated: 2, Before: 3, After: 1, Active: 3},
			rows: []event.SiteRow{deactivated("s01", 2), deactivated("s02", 2)}, err: &ReductionError{3, 1}},

		{rule: "a site with an address alone is placed", given: given(), batch: batchOf(Batch{}, "x", addressed("A", "1 rue")),
			want: event.SitesWritten{Created: 1, Placed: 1, After: 1}, rows: []event.SiteRow{created("x", addressed("A", "1 rue"))}, placed: []Placement{{"x", 0.9}}},
		{rule: "a site that is not found is kept and told", given: given(), batch: batchOf(Batch{}, "x", addressed("A", "nowhere")),
			want: event.SitesWritten{Created: 1, After: 1}, rows: []event.SiteRow{created("x", addressed("A", "nowhere"))}, lost: []string{"x"}},
		{rule: "a placed site said again is unchanged", given: given(placed), batch: batchOf(Batch{}, "x", addressed("A", "1 rue")),
			want: event.SitesWritten{Unchanged: 1, Before: 1, After: 1, Active: 1}},
		{rule: "a placed site sent back as shown is unchanged", given: given(placed), batch: batchOf(Batch{}, "x", echoed("A", "1 rue")),
			want: event.SitesWritten{Unchanged: 1, Before: 1, After: 1, Active: 1}},
		{rule: "a placed site sent back with another address is placed anew", given: given(placed),
			batch: batchOf(Batch{}, "x", moved(echoed("A", "1 rue"), "2 rue")),
			want:  event.SitesWritten{Updated: 1, Placed: 1, Before: 1, After: 1, Active: 1},
			rows:  []event.SiteRow{row("x", event.SiteUpdated, 2, ptr(addressed("A", "2 rue")))}, placed: []Placement{{"x", 0.8}}},
		{rule: "a lost site said again is unchanged while it is lost", given: given(lost), batch: batchOf(Batch{}, "x", addressed("A", "nowhere")),
			want: event.SitesWritten{Unchanged: 1, Before: 1, After: 1, Active: 1}},
		{rule: "a lost site that comes back is told", given: given(lost, had(deactivated("x", 2))), batch: batchOf(Batch{}, "x", addressed("A", "nowhere")),
			want: event.SitesWritten{Reactivated: 1, After: 1}, rows: []event.SiteRow{lostRow(row("x", event.SiteReactivated, 3, nil))}, lost: []string{"x"}},
		{rule: "a lost site is placed as soon as it can be", given: given(lost), batch: batchOf(Batch{}, "x", addressed("A", "nowhere")), placer: found,
			want: event.SitesWritten{Updated: 1, Placed: 1, Before: 1, After: 1, Active: 1},
			rows: []event.SiteRow{found.row("x", event.SiteUpdated, 2, addressed("A", "nowhere"))}, placed: []Placement{{"x", 0.6}}},
		{rule: "a lost site is placed when it comes back", given: given(lost, had(deactivated("x", 2))), batch: batchOf(Batch{}, "x", addressed("A", "nowhere")), placer: found,
			want: event.SitesWritten{Reactivated: 1, Placed: 1, After: 1},
			rows: []event.SiteRow{found.row("x", event.SiteReactivated, 3, addressed("A", "nowhere"))}, placed: []Placement{{"x", 0.6}}},
		{rule: "a site placed by its id alone is not lost when it is sent back", given: given(had(created("x", byID))), batch: batchOf(Batch{}, "x", renamed),
			want: event.SitesWritten{Updated: 1, Placed: 1, Before: 1, After: 1, Active: 1},
			rows: []event.SiteRow{row("x", event.SiteUpdated, 2, &site.Content{Name: "B", IDBan: "ban-2"})}, placed: []Placement{{"x", 1}}},
		{rule: "a customer's position moved by a hair is the customer's", given: given(placed), batch: batchOf(Batch{}, "x", nudged(echoed("A", "1 rue"))),
			want: event.SitesWritten{Updated: 1, Before: 1, After: 1, Active: 1}, rows: []event.SiteRow{row("x", event.SiteUpdated, 2, ptr(nudged(echoed("A", "1 rue"))))}},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c decision) check(t *testing.T) {
	t.Helper()
	j, err := newJob("a", "r", "upsert", c.batch)
	if err != nil {
		t.Fatal(err)
	}
	j.limit = tiny
	if c.placer == nil {
		c.placer = mende
	}
	v, refusal, err := j.decide(t.Context(), c.given, c.placer, now)
	if err != nil {
		t.Fatal(err)
	}
	err = refusal
	if c.batch.DryRun && err == nil {
		err = v.outcome.Refused
	}
	if !sameError(err, c.err) {
		t.Fatalf("got error %v, want %v", err, c.err)
	}
	if err != nil && !c.batch.DryRun {
		return
	}
	c.want.Referential, c.want.Action, c.want.Capacity, c.want.Ceiling = "r", "upsert", 10, 11
	want := verdict{change: change{c.want, c.rows}, outcome: Outcome{SitesWritten: c.want, Placements: c.placed, NotPlaced: c.lost, Refused: c.err}}
	if diff := cmp.Diff(want.change, v.change, cmp.AllowUnexported(change{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.outcome, v.outcome, cmpopts.EquateErrors(), cmpopts.IgnoreFields(Outcome{}, "Refused")); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}
