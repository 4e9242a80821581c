package service_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meilisearch/meilisearch-go"

	"lieudit/eventstore/sqldb"
	"lieudit/projections/searchindex"
	meiliindex "lieudit/projections/searchindex/meili"
	"lieudit/queries/locations/meili"
	"lieudit/queries/locations/search"
	"lieudit/queries/locations/search/searchtest"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/meiliclient/meilitest"
	"lieudit/schemas/table"
)

const generation = "test"

// fixture is a read model that the test itself writes, the index that it fills of it, and the engine that searches
// both.
type fixture struct {
	t        testing.TB
	server   meiliclient.Server
	index    *meiliindex.Index
	engine   *meili.Engine
	registry *sqldb.Registry
	serving  sqldb.Generation
	position int64
}

func openFixture(t testing.TB) *fixture {
	t.Helper()
	registry, err := sqldb.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	s := &fixture{t: t, server: meilitest.Server(t), registry: registry}
	s.index, s.engine = meiliindex.New(s.server, registry, meili.NewDocument), meili.New(s.server, registry)
	if s.serving, err = registry.BuildGeneration(t.Context(), table.LocationsModel, false); err != nil {
		t.Fatal(err)
	}
	if err := registry.PromoteGeneration(t.Context(), table.LocationsModel, s.serving); err != nil {
		t.Fatal(err)
	}
	if _, err := s.index.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.index.SaveProgress(t.Context(), searchindex.Batch{Generation: generation}); err != nil {
		t.Fatal(err)
	}
	return s
}

// writeRows writes rows to the read model alone.
func (s *fixture) writeRows(rows ...table.Site) {
	s.t.Helper()
	s.position++
	for i := range rows {
		rows[i].Position = s.position
	}
	db, release, err := s.registry.OpenGeneration(s.t.Context(), s.serving)
	if err != nil {
		s.t.Fatal(err)
	}
	defer release()
	err = db.RunInTx(s.t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(s.t.Context(), tx, table.Sites, rows) })
	if err != nil {
		s.t.Fatal(err)
	}
}

// applyBatch writes rows to the index alone.
func (s *fixture) applyBatch(rows ...table.Site) {
	s.t.Helper()
	if err := s.index.ApplyBatch(s.t.Context(), searchindex.Batch{Generation: generation, Position: s.position, Sites: rows}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) WriteSites(_ *testing.T, rows ...table.Site) {
	s.t.Helper()
	s.writeRows(rows...)
	s.applyBatch(rows...)
}

func (s *fixture) Engine() search.Engine { return s.engine }

func TestContract(t *testing.T) {
	t.Parallel()
	searchtest.Run(t, func(t *testing.T) searchtest.Fixture { return openFixture(t) })
}

func newShop(account, externalID, name string) table.Site {
	return searchtest.NewSiteRow(account, "shops", externalID, locations.StoredSite{
		Content: locations.Content{Name: name, Tags: []string{"drive"}}, Position: &locations.Position{Lat: 44.5, Lon: 3.5}})
}

// foundIDs are the external ids of all that a query finds.
func (s *fixture) foundIDs(q search.Query) []string {
	s.t.Helper()
	q.Account, q.Limit = "a", 100
	r, err := s.engine.Search(s.t.Context(), q)
	if err != nil {
		s.t.Fatal(err)
	}
	ids := []string{}
	for _, h := range r.Hits {
		ids = append(ids, h.Site.ExternalID)
	}
	return ids
}

func TestAnswersAreWhatTheTablesSayWhateverTheIndexHolds(t *testing.T) {
	t.Parallel()
	s := openFixture(t)
	stays, gone, moved, others := newShop("a", "stays", "Magasin"), newShop("a", "gone", "Magasin"), newShop("a", "moved", "Magasin"), newShop("b", "others", "Magasin")
	s.WriteSites(nil, stays, gone, moved, others)
	stolen := others
	stolen.Account = "a" // as if the index took another account's site for this one's
	s.applyBatch(stolen, newShop("a", "never", "Magasin"))
	gone.Active = false
	s.writeRows(gone, searchtest.NewSiteRow("a", "shops", "moved", locations.StoredSite{Content: locations.Content{Name: "Boutique"}, Position: &locations.Position{Lat: 48, Lon: 2}}))
	center := &geo.Point{Lat: 44.5, Lon: 3.5}
	for name, c := range map[string]struct {
		q    search.Query
		want []string
	}{
		"all":    {search.Query{}, []string{"moved", "stays"}},
		"text":   {search.Query{Text: "magasin"}, []string{"stays"}},
		"tags":   {search.Query{Tags: []string{"drive"}}, []string{"stays"}},
		"radius": {search.Query{Center: center, Radius: 100}, []string{"stays"}},
		"box":    {search.Query{Box: &search.Box{West: 3, South: 44, East: 4, North: 45}}, []string{"stays"}},
		"status": {search.Query{Status: search.Inactive}, []string{}},
	} {
		got := s.foundIDs(c.q)
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPageIsFullThoughWhatTheIndexHoldsIsGone(t *testing.T) {
	t.Parallel()
	s := openFixture(t)
	var rows []table.Site
	for i := range 60 {
		rows = append(rows, newShop("a", fmt.Sprintf("%02d", i), "Magasin"))
	}
	s.WriteSites(nil, rows...)
	for i := range rows[:50] {
		rows[i].Active = false
	}
	s.writeRows(rows[:50]...)
	for _, q := range []search.Query{{}, {Text: "magasin"}, {Center: &geo.Point{Lat: 44.5, Lon: 3.5}}} {
		q.Account, q.Limit = "a", 4
		var got []string
		for {
			r, err := s.engine.Search(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range r.Hits {
				got = append(got, h.Site.ExternalID)
			}
			if q.After = r.Next; r.Next == "" {
				break
			}
			if len(r.Hits) != q.Limit {
				t.Errorf("%+v: got a page of %d", q, len(r.Hits))
			}
		}
		if want := []string{"50", "51", "52", "53", "54", "55", "56", "57", "58", "59"}; !slices.Equal(got, want) {
			t.Errorf("%+v: got %v", q, got)
		}
	}
}

func TestIndexThatWasNeverFilledDoesNotAnswer(t *testing.T) {
	t.Parallel()
	registry, _ := newServingRegistry(t)
	server := meilitest.Server(t)
	index, engine := meiliindex.New(server, registry, meili.NewDocument), meili.New(server, registry)
	q := search.Query{Account: "a", Limit: 1}
	if _, err := engine.Search(t.Context(), q); err == nil {
		t.Error("got an answer of an index that is not there")
	}
	state, err := index.Open(t.Context())
	if err != nil || state != (searchindex.IndexState{}) {
		t.Fatalf("got %+v, %v", state, err)
	}
	if _, err := engine.Search(t.Context(), q); !errors.Is(err, search.ErrStaleIndex) {
		t.Errorf("got %v, want %v", err, search.ErrStaleIndex)
	}
}

func TestIndexKnowsHowFarItWasTold(t *testing.T) {
	t.Parallel()
	s := openFixture(t)
	s.WriteSites(nil, newShop("a", "p", "Magasin"), newShop("a", "q", "Magasin"))
	s.WriteSites(nil, newShop("b", "p", "Magasin"))
	steps := []struct {
		gone []string
		want int
	}{{nil, 3}, {[]string{"a/shops/q"}, 2}, {[]string{"a/"}, 1}}
	for i, step := range steps {
		position := int64(10 + i)
		b := searchindex.Batch{Generation: generation, Position: position, Deleted: step.gone}
		if err := errors.Join(s.index.ApplyBatch(t.Context(), b), s.index.SaveProgress(t.Context(), b)); err != nil {
			t.Fatal(err)
		}
		state, err := s.index.Open(t.Context())
		if want := (searchindex.IndexState{Generation: generation, Position: position, Sites: step.want}); state != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", state, err, want)
		}
	}
	if err := s.index.SaveProgress(t.Context(), searchindex.Batch{Generation: "another", Position: 20}); err != nil {
		t.Fatal(err)
	}
	if state, err := s.index.Open(t.Context()); state != (searchindex.IndexState{Generation: "another", Position: 20}) || err != nil {
		t.Errorf("got %+v, %v", state, err)
	}
}

func TestWhatCannotBeTakenIsRefused(t *testing.T) {
	t.Parallel()
	s := openFixture(t)
	long := newShop("a", strings.Repeat("x", 600), "Magasin") // its id is longer than the server takes
	broken := newShop("a", "broken", "Magasin")
	broken.Content = "{"
	for _, bad := range []table.Site{long, broken} {
		err := s.index.ApplyBatch(t.Context(), searchindex.Batch{Generation: generation, Sites: []table.Site{newShop("a", "good", "Magasin"), bad}})
		if !errors.Is(err, searchindex.ErrRefused) {
			t.Errorf("got %v, want %v", err, searchindex.ErrRefused)
		}
	}
	odd := newShop("a", "odd", "Magasin")
	odd.Content = `{"content":{"nom":"Odd","lat":91,"lon":1e300}}`
	empty := newShop("a", "empty", "")
	empty.Content = "" // its key was destroyed
	s.WriteSites(nil, odd, newShop("a", "good", "Magasin"), empty)
	if got := s.foundIDs(search.Query{}); !slices.Equal(got, []string{"good", "odd", "empty"}) {
		t.Errorf("got %v", got)
	}
}

// Where the server finds nothing, no row is read whose error would say so.
func TestRowsThatAreNotToBeShownAreTheAnswerBeforeTheServerIsAsked(t *testing.T) {
	t.Parallel()
	registry, serving := newServingRegistry(t)
	engine := meili.New(meiliclient.Server{URL: "http://127.0.0.1:1", Index: "sites"}, registry)
	registry.SetDiverged(serving, true)
	if _, err := engine.Search(t.Context(), search.Query{Account: "a", Limit: 1}); !errors.Is(err, sqldb.ErrDiverged) {
		t.Errorf("got %v, want %v", err, sqldb.ErrDiverged)
	}
}

// newServingRegistry makes a registry with an empty generation of sites that serves.
func newServingRegistry(t *testing.T) (*sqldb.Registry, sqldb.Generation) {
	t.Helper()
	registry, err := sqldb.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	c, err := registry.BuildGeneration(t.Context(), table.LocationsModel, false)
	if err == nil {
		err = registry.PromoteGeneration(t.Context(), table.LocationsModel, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return registry, c
}

func TestIndexThatIsLostIsNoticed(t *testing.T) {
	t.Parallel()
	s := openFixture(t)
	s.WriteSites(nil, newShop("a", "p", "Magasin"))
	server := meilisearch.New(s.server.URL, meilisearch.WithAPIKey(s.server.Key), meilisearch.WithCustomClient(&http.Client{Transport: s.server.Transport}))
	task, err := server.DeleteIndex(t.Context(), s.server.Index)
	if err == nil {
		_, err = server.WaitForTask(t.Context(), task.TaskUID, time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = s.index.ApplyBatch(t.Context(), searchindex.Batch{Generation: generation, Sites: []table.Site{newShop("a", "q", "Magasin")}})
	if !errors.Is(err, searchindex.ErrLost) {
		t.Errorf("got %v, want %v", err, searchindex.ErrLost)
	}
	if err := s.index.SaveProgress(t.Context(), searchindex.Batch{Generation: generation, Position: 1}); err != nil {
		t.Fatal(err)
	}
	if state, err := s.index.Open(t.Context()); state.Generation != "" || err != nil {
		t.Errorf("got %+v, %v", state, err)
	}
	if _, err := s.engine.Search(t.Context(), search.Query{Account: "a", Limit: 1}); !errors.Is(err, search.ErrStaleIndex) {
		t.Errorf("got %v, want %v", err, search.ErrStaleIndex)
	}
}

func TestServerThatIsAwayOrSilentIsAnError(t *testing.T) {
	t.Parallel()
	registry, _ := newServingRegistry(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	engine := meili.New(meiliclient.Server{URL: "http://" + silent.Addr().String(), Key: "secret", Index: "sites"}, registry)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, q := range []search.Query{{Account: "a", Limit: 1}, {Account: "a", Limit: 1, Text: "x"}} {
		if _, err := engine.Search(ctx, q); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	}
	silent.Close()
	_, err = engine.Search(t.Context(), search.Query{Account: "a", Limit: 1})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestRecordingsAreOfOneServer(t *testing.T) {
	t.Parallel()
	versions := meilitest.RecordedVersions(t)
	if len(versions) != 1 {
		t.Errorf("got recordings of %v, want those of one version", versions)
	}
	t.Logf("recorded with Meilisearch: %v", versions)
}
