package locations

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"lieudit/commands"
	"lieudit/schemas/locations"
)

// oddContent has a telephone number and hours of before there were rules for them.
func oddContent(name string) content {
	c := contentWithPosition(name)
	c.Phone, c.Hours = "au comptoir", json.RawMessage(`{"lundi":"9h"}`)
	return c
}

// newFixtureWithOddSite is an instance on a log that holds the site x of oddContent.
func newFixtureWithOddSite(t *testing.T) *Locations {
	t.Helper()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	j, err := newWriteJob("a", "magasins", "sync", Batch{Rows: []Row{{"x", oddContent("A")}}})
	if err != nil {
		t.Fatal(err)
	}
	j.limit, _ = l.plans.PlanOf(t.Context(), "a")
	stager := l.newStager("a", shopMeta)
	if _, err := l.handler.Handle(t.Context(), "a", shopMeta, func(s *State) commands.Result { // as an older release did
		v, refused := j.decide(s, l.now())
		switch {
		case refused != nil:
			return commands.Fail(refused)
		case v.isUnprepared:
			return commands.PrepareFirst(func(ctx context.Context) error { return j.prepareContents(ctx, l.geocoder) })
		}
		return stager.appendChanges(v.siteChanges)
	}); err != nil {
		t.Fatal(err)
	}
	return l
}

// faultsOf are the members that a write is refused for, as "x telephone"; "" for a write that is not.
func faultsOf(t *testing.T, err error) string {
	t.Helper()
	e, ok := errors.AsType[*ContentError](err)
	if !ok && err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := 0; ok && i < len(e.Faults); i++ {
		all = append(all, e.Faults[i].ExternalID+" "+e.Faults[i].Member)
	}
	return strings.Join(all, ", ")
}

func TestContentThatBreaksARuleIsRefusedUnlessTheSiteHasIt(t *testing.T) {
	t.Parallel()
	renamed, changed, added := oddContent("B"), oddContent("B"), contentWithPosition("C")
	changed.Phone, changed.Hours = "au guichet", json.RawMessage(` {"lundi": "9h"}`)
	added.Email = "nobody"
	for rule, c := range map[string]struct {
		rows []Row
		want string
	}{
		"unchanged":                {[]Row{{"x", oddContent("A")}}, ""},
		"another name":             {[]Row{{"x", renamed}}, ""},
		"another telephone":        {[]Row{{"x", changed}}, "x telephone"},
		"a new site":               {[]Row{{"x", oddContent("A")}, {"y", oddContent("A")}}, "y telephone, y horaires"},
		"a member that it had not": {[]Row{{"x", added}}, "x email"},
	} {
		for _, isDryRun := range []bool{true, false} {
			l := newFixtureWithOddSite(t)
			_, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: c.rows, DryRun: isDryRun})
			if got := faultsOf(t, err); got != c.want {
				t.Errorf("%s: got %q, want %q", rule, got, c.want)
			}
		}
		l := newFixtureWithOddSite(t)
		_, _, _, err := l.PutSite(t.Context(), "a", shopMeta, "magasins", c.rows[len(c.rows)-1])
		if got := faultsOf(t, err); got != c.want {
			t.Errorf("%s, put: got %q, want %q", rule, got, c.want)
		}
	}
}

func TestPatchOfASiteLooksAtWhatItChanges(t *testing.T) {
	t.Parallel()
	l := newFixtureWithOddSite(t)
	patch := func(edit func(*content)) string {
		_, _, err := l.PatchSite(t.Context(), "a", shopMeta, "magasins", "x", func(c content) (content, error) {
			edit(&c)
			return c, nil
		})
		return faultsOf(t, err)
	}
	if got := patch(func(c *content) { c.Website = "exemple.fr" }); got != "x site_web" {
		t.Errorf("a wrong website: got %q", got)
	}
	if got := patch(func(c *content) { c.Name = "B" }); got != "" {
		t.Errorf("another name: got %q", got)
	}
}

func TestContentIsRefusedBeforeTheCapacity(t *testing.T) {
	t.Parallel()
	l := newFixtureWithOddSite(t)
	rows := manyRows(50)
	rows[49].Content.Email = "nobody"
	_, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: rows})
	if got := faultsOf(t, err); got != rows[49].ExternalID+" email" {
		t.Errorf("got %q", got)
	}
}

// interruptedGeocoder calls interrupt before the first address is geocoded.
type interruptedGeocoder struct {
	Geocoder
	once      *sync.Once
	interrupt func()
}

func (g interruptedGeocoder) Geocode(ctx context.Context, c content) (locations.Position, bool, error) {
	g.once.Do(g.interrupt)
	return g.Geocoder.Geocode(ctx, c)
}

// A content that the site has breaks no rule, until another command changes the site: then the batch would write it anew.
func TestContentThatAnotherCommandMadeNewIsChecked(t *testing.T) {
	t.Parallel()
	l := newFixtureWithOddSite(t)
	l.geocoder = interruptedGeocoder{l.geocoder, &sync.Once{}, func() {
		if _, _, _, err := l.PutSite(t.Context(), "a", shopMeta, "magasins", Row{"x", contentWithPosition("A")}); err != nil {
			t.Error(err)
		}
	}}
	rows := []Row{{"x", oddContent("A")}, rowWithAddress("y", "B", "1 rue", "Mende")}
	_, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: rows})
	if got := faultsOf(t, err); got != "x telephone, x horaires" {
		t.Errorf("got %q, want the members that the site has no longer", got)
	}
}
