package locations

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

type writeCase struct {
	rule     string
	given    *State
	batch    Batch
	want     event.SiteWriteSummary // without referential, action, capacity and ceiling
	rows     []event.SiteRow
	placed   []GeocodedSite
	lost     []string
	geocoder fakeGeocoder // nil: mendeGeocoder
	err      error        // of a dry run: Outcome.Refused
}

func TestWriteDecides(t *testing.T) {
	t.Parallel()
	whole, confirmed, dry := Batch{IsSync: true}, Batch{IsSync: true, Confirmed: true}, Batch{IsSync: true, DryRun: true}
	a, b := contentWithPosition("A"), contentWithPosition("B")
	one := sitesChanged(createdRow("x", a))
	gone := []event.Event{one, sitesChanged(deactivatedRow("x", 2))}
	placed := sitesChanged(createdRow("x", contentWithAddress("A", "1 rue")))
	lost := sitesChanged(createdRow("x", contentWithAddress("A", "nowhere")))
	found := fakeGeocoder{"nowhere": {Lat: 1, Lon: 2, Score: 0.6, Precision: locations.PrecisionMunicipality}}
	byID := locations.Content{Name: "A", IDBan: "ban-2"}
	shownByID := storedContent(byID).ShownContent()
	renamed := shownByID
	renamed.Name = "B"
	other := event.ReferentialOpened{Code: "o"}
	elsewhere := event.SitesChanged{SiteWriteSummary: event.SiteWriteSummary{Referential: "o"}, Rows: []event.SiteRow{createdRow("x", a), createdRow("y", a)}}
	for _, c := range []writeCase{
		{rule: "a new site is created", given: given(), batch: batchOf(Batch{}, "x", a),
			want: event.SiteWriteSummary{Created: 1, ActiveAfter: 1}, rows: []event.SiteRow{createdRow("x", a)}},
		{rule: "rows are in the order of their ids", given: given(), batch: batchOf(Batch{}, "y", a, "x", b),
			want: event.SiteWriteSummary{Created: 2, ActiveAfter: 2}, rows: []event.SiteRow{createdRow("x", b), createdRow("y", a)}},
		{rule: "the same site is unchanged", given: given(one), batch: batchOf(whole, "x", a),
			want: event.SiteWriteSummary{Unchanged: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1}},
		{rule: "another content is an update", given: given(one), batch: batchOf(Batch{}, "x", b),
			want: event.SiteWriteSummary{Updated: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1}, rows: []event.SiteRow{siteRow("x", event.SiteUpdated, 2, &b)}},
		{rule: "an inactive site comes back as it was", given: given(gone...), batch: batchOf(Batch{}, "x", a),
			want: event.SiteWriteSummary{Reactivated: 1, ActiveAfter: 1}, rows: []event.SiteRow{siteRow("x", event.SiteReactivated, 3, nil)}},
		{rule: "an inactive site comes back as another", given: given(gone...), batch: batchOf(Batch{}, "x", b),
			want: event.SiteWriteSummary{Reactivated: 1, ActiveAfter: 1}, rows: []event.SiteRow{siteRow("x", event.SiteReactivated, 3, &b)}},
		{rule: "a sync deactivates what it omits", given: given(createdSites(4)), batch: addSites(whole, 3),
			want: event.SiteWriteSummary{Unchanged: 3, Deactivated: 1, ActiveBefore: 4, ActiveAfter: 3, AccountActive: 4}, rows: []event.SiteRow{deactivatedRow("s03", 2)}},
		{rule: "a sync does not deactivate twice", given: given(gone...), batch: whole, want: event.SiteWriteSummary{}},
		{rule: "an upsert omits nothing", given: given(createdSites(4)), batch: addSites(Batch{}, 1),
			want: event.SiteWriteSummary{Unchanged: 1, ActiveBefore: 4, ActiveAfter: 4, AccountActive: 4}},
		{rule: "a sync of another referential is none of ours", given: given(other, elsewhere, one), batch: batchOf(whole, "x", a),
			want: event.SiteWriteSummary{Unchanged: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 3}},

		{rule: "half of the sites may go", given: given(createdSites(4)), batch: addSites(whole, 2),
			want: event.SiteWriteSummary{Unchanged: 2, Deactivated: 2, ActiveBefore: 4, ActiveAfter: 2, AccountActive: 4}, rows: []event.SiteRow{deactivatedRow("s02", 2), deactivatedRow("s03", 2)}},
		{rule: "more than half may not", given: given(createdSites(3)), batch: addSites(whole, 1), err: refusal.SuspiciousReduction.With(refusal.Details{Before: 3, After: 1})},
		{rule: "what is created does not make up for it", given: given(createdSites(3)), batch: batchOf(whole, "n0", a, "n1", a, "n2", a), err: refusal.SuspiciousReduction.With(refusal.Details{Before: 3, After: 3})},
		{rule: "more than half may go when it is meant", given: given(createdSites(1)), batch: confirmed,
			want: event.SiteWriteSummary{Deactivated: 1, ActiveBefore: 1, AccountActive: 1}, rows: []event.SiteRow{deactivatedRow("s00", 2)}},
		{rule: "the ceiling can be reached", given: given(createdSites(10)), batch: addSites(Batch{}, 11),
			want: event.SiteWriteSummary{Created: 1, Unchanged: 10, ActiveBefore: 10, ActiveAfter: 11, AccountActive: 10}, rows: []event.SiteRow{createdRow("s10", contentWithPosition("S"))}},
		{rule: "the ceiling cannot be passed", given: given(createdSites(10)), batch: addSites(Batch{}, 12), err: refusal.SitesOverCapacity.With(refusal.Details{Active: 10, Capacity: 10, Ceiling: 11})},
		{rule: "sites of all referentials count", given: given(other, elsewhere), batch: addSites(Batch{}, 10), err: refusal.SitesOverCapacity.With(refusal.Details{Active: 2, Capacity: 10, Ceiling: 11})},
		{rule: "who is above the ceiling may update", given: given(createdSites(20)), batch: batchOf(Batch{}, "s00", b),
			want: event.SiteWriteSummary{Updated: 1, ActiveBefore: 20, ActiveAfter: 20, AccountActive: 20}, rows: []event.SiteRow{siteRow("s00", event.SiteUpdated, 2, &b)}},
		{rule: "who is above the ceiling may swap", given: given(createdSites(20)), batch: batchOf(addSites(whole, 19), "n", b),
			want: event.SiteWriteSummary{Created: 1, Unchanged: 19, Deactivated: 1, ActiveBefore: 20, ActiveAfter: 20, AccountActive: 20}, rows: []event.SiteRow{createdRow("n", b), deactivatedRow("s19", 2)}},
		{rule: "who is above the ceiling may not grow", given: given(createdSites(20)), batch: addSites(Batch{}, 21), err: refusal.SitesOverCapacity.With(refusal.Details{Active: 20, Capacity: 10, Ceiling: 11})},
		{rule: "a reactivation counts", given: given(createdSites(11), sitesChanged(deactivatedRow("s00", 2)), sitesChanged(createdRow("n", a))), batch: addSites(Batch{}, 1), err: refusal.SitesOverCapacity.With(refusal.Details{Active: 11, Capacity: 10, Ceiling: 11})},
		{rule: "the capacity is refused before the reduction", given: given(createdSites(3)), batch: batchOf(whole, newPairs(12)...), err: refusal.SitesOverCapacity.With(refusal.Details{Active: 3, Capacity: 10, Ceiling: 11})},
		{rule: "an archived referential takes no writes", given: given(event.ReferentialArchived{Code: "r"}), batch: addSites(Batch{}, 20), err: refusal.ReferentialArchived},
		{rule: "an unknown referential is not found", given: new(State), batch: addSites(Batch{}, 1), err: ErrUnknownReferential},

		{rule: "a dry run says what it would do", given: given(one), batch: batchOf(dry, "x", a, "y", contentWithAddress("B", "1 rue")),
			want: event.SiteWriteSummary{Created: 1, Unchanged: 1, Geocoded: 1, ActiveBefore: 1, ActiveAfter: 2, AccountActive: 1},
			rows: []event.SiteRow{createdRow("y", contentWithAddress("B", "1 rue"))}, placed: []GeocodedSite{{"y", 0.9, locations.PrecisionStreet}}},
		{rule: "a dry run says what it would be refused for", given: given(createdSites(3)), batch: addSites(dry, 1),
			want: event.SiteWriteSummary{Unchanged: 1, Deactivated: 2, ActiveBefore: 3, ActiveAfter: 1, AccountActive: 3},
			rows: []event.SiteRow{deactivatedRow("s01", 2), deactivatedRow("s02", 2)}, err: refusal.SuspiciousReduction.With(refusal.Details{Before: 3, After: 1})},

		{rule: "a site with an address alone is placed", given: given(), batch: batchOf(Batch{}, "x", contentWithAddress("A", "1 rue")),
			want: event.SiteWriteSummary{Created: 1, Geocoded: 1, ActiveAfter: 1}, rows: []event.SiteRow{createdRow("x", contentWithAddress("A", "1 rue"))}, placed: []GeocodedSite{{"x", 0.9, locations.PrecisionStreet}}},
		{rule: "a site that is not found is kept and told", given: given(), batch: batchOf(Batch{}, "x", contentWithAddress("A", "nowhere")),
			want: event.SiteWriteSummary{Created: 1, ActiveAfter: 1}, rows: []event.SiteRow{createdRow("x", contentWithAddress("A", "nowhere"))}, lost: []string{"x"}},
		{rule: "a placed site said again is unchanged", given: given(placed), batch: batchOf(Batch{}, "x", contentWithAddress("A", "1 rue")),
			want: event.SiteWriteSummary{Unchanged: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1}},
		{rule: "a placed site sent back as shown is unchanged", given: given(placed), batch: batchOf(Batch{}, "x", contentAsShown("A", "1 rue")),
			want: event.SiteWriteSummary{Unchanged: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1}},
		{rule: "a placed site sent back with another address is placed anew", given: given(placed),
			batch: batchOf(Batch{}, "x", withAddress(contentAsShown("A", "1 rue"), "2 rue")),
			want:  event.SiteWriteSummary{Updated: 1, Geocoded: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1},
			rows:  []event.SiteRow{siteRow("x", event.SiteUpdated, 2, ptr(contentWithAddress("A", "2 rue")))}, placed: []GeocodedSite{{"x", 0.8, locations.PrecisionHouseNumber}}},
		{rule: "a lost site said again is unchanged while it is lost", given: given(lost), batch: batchOf(Batch{}, "x", contentWithAddress("A", "nowhere")),
			want: event.SiteWriteSummary{Unchanged: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1}},
		{rule: "a lost site that comes back is told", given: given(lost, sitesChanged(deactivatedRow("x", 2))), batch: batchOf(Batch{}, "x", contentWithAddress("A", "nowhere")),
			want: event.SiteWriteSummary{Reactivated: 1, ActiveAfter: 1}, rows: []event.SiteRow{unlocatedRow(siteRow("x", event.SiteReactivated, 3, nil))}, lost: []string{"x"}},
		{rule: "a lost site is placed as soon as it can be", given: given(lost), batch: batchOf(Batch{}, "x", contentWithAddress("A", "nowhere")), geocoder: found,
			want: event.SiteWriteSummary{Updated: 1, Geocoded: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1},
			rows: []event.SiteRow{found.siteRow("x", event.SiteUpdated, 2, contentWithAddress("A", "nowhere"))}, placed: []GeocodedSite{{"x", 0.6, locations.PrecisionMunicipality}}},
		{rule: "a lost site is placed when it comes back", given: given(lost, sitesChanged(deactivatedRow("x", 2))), batch: batchOf(Batch{}, "x", contentWithAddress("A", "nowhere")), geocoder: found,
			want: event.SiteWriteSummary{Reactivated: 1, Geocoded: 1, ActiveAfter: 1},
			rows: []event.SiteRow{found.siteRow("x", event.SiteReactivated, 3, contentWithAddress("A", "nowhere"))}, placed: []GeocodedSite{{"x", 0.6, locations.PrecisionMunicipality}}},
		{rule: "a site placed by its id alone is not lost when it is sent back", given: given(sitesChanged(createdRow("x", byID))), batch: batchOf(Batch{}, "x", renamed),
			want: event.SiteWriteSummary{Updated: 1, Geocoded: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1},
			rows: []event.SiteRow{siteRow("x", event.SiteUpdated, 2, &locations.Content{Name: "B", IDBan: "ban-2"})}, placed: []GeocodedSite{{"x", 1, locations.PrecisionHouseNumber}}},
		{rule: "a customer's position moved by a hair is the customer's", given: given(placed), batch: batchOf(Batch{}, "x", withMovedPosition(contentAsShown("A", "1 rue"))),
			want: event.SiteWriteSummary{Updated: 1, ActiveBefore: 1, ActiveAfter: 1, AccountActive: 1}, rows: []event.SiteRow{siteRow("x", event.SiteUpdated, 2, ptr(withMovedPosition(contentAsShown("A", "1 rue"))))}},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c writeCase) check(t *testing.T) {
	t.Helper()
	j, err := newWriteJob("a", "r", "upsert", c.batch)
	if err != nil {
		t.Fatal(err)
	}
	j.limit = tinyPlan
	if c.geocoder == nil {
		c.geocoder = mendeGeocoder
	}
	v, err := j.decide(c.given, now)
	if v.isUnprepared {
		if err := j.prepareContents(t.Context(), c.geocoder); err != nil {
			t.Fatal(err)
		}
		v, err = j.decide(c.given, now)
	}
	if v.isUnprepared {
		t.Fatal("a job whose contents are prepared asks for them again")
	}
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
	want := jobResult{siteChanges: siteChanges{c.want, c.rows}, outcome: Outcome{SiteWriteSummary: c.want, Changes: listChanges(c.rows), GeocodedSites: c.placed, UnlocatedSites: c.lost, Refused: c.err}}
	if diff := cmp.Diff(want.siteChanges, v.siteChanges, cmp.AllowUnexported(siteChanges{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.outcome, v.outcome, cmpopts.EquateErrors(), cmpopts.IgnoreFields(Outcome{}, "Refused"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}
