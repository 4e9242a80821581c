package locations

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/locations"
)

// newCommuneFixture is an instance whose geocoder places sites of "Mende" at the centre of the commune, and others of a line
// "1 rue" at a house number.
func newCommuneFixture(t *testing.T) *Locations {
	t.Helper()
	s := newFixture(t)
	l := s.newInstance(s.store)
	l.geocoder = fakeGeocoder{
		"Mende": {Lat: 44.5, Lon: 3.5, IDBan: "ban-c", Score: 0.9, Precision: locations.PrecisionMunicipality},
		"1 rue": {Lat: 44.6, Lon: 3.5, IDBan: "ban-1", Score: 0.9, Precision: locations.PrecisionHouseNumber},
		"ban-c": {Lat: 44.5, Lon: 3.5, IDBan: "ban-c", Score: 1, Precision: locations.PrecisionMunicipality},
	}
	mustOpen(t, l, "magasins")
	return l
}

// communeRows are n rows, of which the second and every third after it are placed at the centre of a commune.
func communeRows(n int) (rows []Row, atCommune []string) {
	for i := range n {
		r := Row{ExternalID: fmt.Sprintf("s%05d", i), Content: contentWithAddress("A", "1 rue")}
		if i%3 == 1 {
			r.Content = contentWithAddress("A", "Mende")
			atCommune = append(atCommune, r.ExternalID)
		}
		rows = append(rows, r)
	}
	return rows, atCommune
}

func TestSitesAtTheCentreOfACommuneAreToldWrittenOrNot(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"in one event": 10, "staged": 2000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newCommuneFixture(t)
			rows, want := communeRows(n)
			for _, b := range []Batch{{Rows: rows, DryRun: true}, {Rows: rows, IsSync: true}, {Rows: rows, IsSync: true}, {Rows: rows, DryRun: true}} {
				o := mustWrite(t, l, "magasins", b)
				if diff := cmp.Diff(want, o.CommuneSites); diff != "" {
					t.Errorf("created %d, unchanged %d (-want +got):\n%s", o.Created, o.Unchanged, diff)
				}
			}
		})
	}
}

func TestSiteThatIsSentAsItIsShownStaysAtTheCentreOfItsCommune(t *testing.T) {
	t.Parallel()
	l := newCommuneFixture(t)
	mustWrite(t, l, "magasins", Batch{Rows: []Row{{"a", contentWithAddress("A", "Mende")}, {"b", content{Name: "B", IDBan: "ban-c"}}}})
	var shown []Row
	for _, id := range []string{"a", "b"} {
		s, err := l.readSite(t.Context(), "a", "magasins", id)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, Row{id, s.Content})
	}
	o := mustWrite(t, l, "magasins", Batch{Rows: shown})
	if diff := cmp.Diff([]string{"a", "b"}, o.CommuneSites); diff != "" || o.Unchanged != 2 {
		t.Errorf("%+v: (-want +got)\n%s", o, diff)
	}
}

func TestRepeatedRequestTellsTheCommuneSitesOfTheFirst(t *testing.T) {
	t.Parallel()
	l := newCommuneFixture(t)
	rows, want := communeRows(6)
	mustWrite(t, l, "magasins", Batch{Rows: rows[:3]}) // of the batch below these stay as they are
	b := Batch{Rows: rows, IsSync: true, IdempotencyKey: "k", RequestDigest: []byte("1")}
	first := mustWrite(t, l, "magasins", b)
	mustPut(t, l, Row{rows[0].ExternalID, contentWithAddress("A", "Mende")}) // not at a commune when the batch was answered
	mustPut(t, l, Row{rows[4].ExternalID, contentWithAddress("A", "1 rue")}) // at a commune when the batch was answered
	if diff := cmp.Diff(first, mustWrite(t, l, "magasins", b)); diff != "" || !cmp.Equal(first.CommuneSites, want) {
		t.Errorf("first %v, want %v; (-first +again):\n%s", first.CommuneSites, want, diff)
	}
}

func TestOnlyAnAddressWithoutANumberMayBeACommune(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"": true, "Mende": true, "48000 Mende": true, "rue de Mende": true, "1 rue": false, " 12B rue": false} {
		if got := mayBePlacedAtCommune(contentWithAddress("A", line)); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}
