package api

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/commands/locations"
	"lieudit/queries/address/commune"
	"lieudit/queries/locations/alert"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
)

func newAlertingHandler(t *testing.T) *handler {
	t.Helper()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return &handler{locations: Locations{Alerts: alert.NewChecker(communes)}}
}

// namedSite is a row with a name and an address in a commune, and a position in Mende.
func namedSite(id, city string) locations.Row {
	lat, lon := 44.518, 3.5
	return locations.Row{ExternalID: id, Content: sites.Content{Name: "N", Lat: &lat, Lon: &lon, Address: &sites.SiteAddress{City: city}}}
}

func TestAllAlertsAreCountedAndTheGravestListed(t *testing.T) {
	t.Parallel()
	var rows []locations.Row
	for i := range 150 {
		rows = append(rows, locations.Row{ExternalID: fmt.Sprintf("s%03d", 149-i), Content: sites.Content{Name: "N"}})
	}
	rows = append(rows, namedSite("far", "Paris"))
	listed, counts := newAlertingHandler(t).findAlerts(rows, locations.Outcome{})
	if want := (body.AlertCounts{FarPosition: 1, EmptyAddress: 150}); counts != want {
		t.Errorf("got %+v, want %+v", counts, want)
	}
	if len(listed) != 100 || listed[0].ExternalID != "far" || listed[1].ExternalID != "s149" || listed[99].ExternalID != "s051" {
		t.Errorf("got %d: %+v, want 100, far first, then as in the request", len(listed), listed)
	}
}

// A site that is sent back with another address and the position that it showed loses that position.
func TestAPositionThatTheSiteLosesIsNotDoubted(t *testing.T) {
	t.Parallel()
	rows := []locations.Row{namedSite("own", "Paris"), namedSite("placed", "Paris"), namedSite("lost", "Paris"), namedSite("kept", "Paris")}
	o := locations.Outcome{
		GeocodedSites:  []locations.GeocodedSite{{ExternalID: "placed", Score: 1, Precision: sites.PrecisionMunicipality}},
		UnlocatedSites: []string{"lost"}, CommuneSites: []string{"kept", "placed"},
	}
	listed, _ := newAlertingHandler(t).findAlerts(rows, o)
	var got []string
	for _, a := range listed {
		got = append(got, a.Code+" "+a.ExternalID)
	}
	if diff := cmp.Diff([]string{"position_loin own", "place_commune placed", "place_commune kept"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoAlertsAreAnEmptyList(t *testing.T) {
	t.Parallel()
	listed, counts := newAlertingHandler(t).findAlerts([]locations.Row{namedSite("a", "Mende")}, locations.Outcome{})
	if listed == nil || len(listed) > 0 || counts != (body.AlertCounts{}) {
		t.Errorf("got %#v, %+v", listed, counts)
	}
}
