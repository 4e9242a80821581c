package meili_test

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

	"lieudit/queries/places/finder"
	"lieudit/queries/places/finder/findertest"
	"lieudit/queries/places/meili"
	"lieudit/queries/places/meili/meilitest"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

func shop(account, externalID, name string) table.Site {
	return findertest.Row(account, "shops", externalID, site.Stored{
		Content: site.Content{Name: name, Tags: []string{"drive"}}, Position: &site.Position{Lat: 44.5, Lon: 3.5}})
}

// found are the external ids of all that a question finds.
func (s *stage) found(q finder.Query) []string {
	s.t.Helper()
	q.Account, q.Limit = "a", 100
	r, err := s.index.Search(s.t.Context(), q)
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
	s := open(t)
	stays, gone, moved, others := shop("a", "stays", "Magasin"), shop("a", "gone", "Magasin"), shop("a", "moved", "Magasin"), shop("b", "others", "Magasin")
	s.Put(nil, stays, gone, moved, others)
	stolen := others
	stolen.Account = "a" // as if the index took another account's site for this one's
	s.tell(stolen, shop("a", "never", "Magasin"))
	gone.Active = false
	s.write(gone, findertest.Row("a", "shops", "moved", site.Stored{Content: site.Content{Name: "Boutique"}, Position: &site.Position{Lat: 48, Lon: 2}}))
	center := &finder.Point{Lat: 44.5, Lon: 3.5}
	for name, c := range map[string]struct {
		q    finder.Query
		want []string
	}{
		"all":    {finder.Query{}, []string{"moved", "stays"}},
		"text":   {finder.Query{Text: "magasin"}, []string{"stays"}},
		"tags":   {finder.Query{Tags: []string{"drive"}}, []string{"stays"}},
		"radius": {finder.Query{Center: center, Radius: 100}, []string{"stays"}},
		"box":    {finder.Query{Box: &finder.Box{West: 3, South: 44, East: 4, North: 45}}, []string{"stays"}},
		"status": {finder.Query{Status: finder.Inactive}, []string{}},
	} {
		got := s.found(c.q)
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPageIsFullThoughWhatTheIndexHoldsIsGone(t *testing.T) {
	t.Parallel()
	s := open(t)
	var rows []table.Site
	for i := range 60 {
		rows = append(rows, shop("a", fmt.Sprintf("%02d", i), "Magasin"))
	}
	s.Put(nil, rows...)
	for i := range rows[:50] {
		rows[i].Active = false
	}
	s.write(rows[:50]...)
	for _, q := range []finder.Query{{}, {Text: "magasin"}, {Center: &finder.Point{Lat: 44.5, Lon: 3.5}}} {
		q.Account, q.Limit = "a", 4
		var got []string
		for {
			r, err := s.index.Search(t.Context(), q)
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
	shelf, _ := filled(t)
	index := meili.New(meilitest.Server(t), shelf)
	q := finder.Query{Account: "a", Limit: 1}
	if _, err := index.Search(t.Context(), q); err == nil {
		t.Error("got an answer of an index that is not there")
	}
	told, err := index.Open(t.Context())
	if err != nil || told != (meili.Told{}) {
		t.Fatalf("got %+v, %v", told, err)
	}
	if _, err := index.Search(t.Context(), q); !errors.Is(err, finder.ErrBehind) {
		t.Errorf("got %v, want %v", err, finder.ErrBehind)
	}
}

func TestIndexKnowsHowFarItWasTold(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Put(nil, shop("a", "p", "Magasin"), shop("a", "q", "Magasin"))
	s.Put(nil, shop("b", "p", "Magasin"))
	steps := []struct {
		gone []string
		want int
	}{{nil, 3}, {[]string{"a/shops/q"}, 2}, {[]string{"a/"}, 1}}
	for i, step := range steps {
		position := int64(10 + i)
		b := meili.Batch{Fill: fill, Position: position, Gone: step.gone}
		if err := errors.Join(s.index.Tell(t.Context(), b), s.index.Seal(t.Context(), b)); err != nil {
			t.Fatal(err)
		}
		told, err := s.index.Open(t.Context())
		if want := (meili.Told{Fill: fill, Position: position, Sites: step.want}); told != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", told, err, want)
		}
	}
	if err := s.index.Seal(t.Context(), meili.Batch{Fill: "another", Position: 20}); err != nil {
		t.Fatal(err)
	}
	if told, err := s.index.Open(t.Context()); told != (meili.Told{Fill: "another", Position: 20}) || err != nil {
		t.Errorf("got %+v, %v", told, err)
	}
}

func TestWhatCannotBeTakenIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	long := shop("a", strings.Repeat("x", 600), "Magasin") // its id is longer than the server takes
	broken := shop("a", "broken", "Magasin")
	broken.Content = "{"
	for _, bad := range []table.Site{long, broken} {
		err := s.index.Tell(t.Context(), meili.Batch{Fill: fill, Sites: []table.Site{shop("a", "good", "Magasin"), bad}})
		if !errors.Is(err, meili.ErrRefused) {
			t.Errorf("got %v, want %v", err, meili.ErrRefused)
		}
	}
	odd := shop("a", "odd", "Magasin")
	odd.Content = `{"content":{"nom":"Odd","lat":91,"lon":1e300}}`
	empty := shop("a", "empty", "")
	empty.Content = "" // its key was destroyed
	s.Put(nil, odd, shop("a", "good", "Magasin"), empty)
	if got := s.found(finder.Query{}); !slices.Equal(got, []string{"good", "odd", "empty"}) {
		t.Errorf("got %v", got)
	}
}

// TestRowsThatAreNotToBeShownAreTheAnswerBeforeTheServerIsAsked: where it finds nothing, no row is read that would tell.
func TestRowsThatAreNotToBeShownAreTheAnswerBeforeTheServerIsAsked(t *testing.T) {
	t.Parallel()
	shelf, serving := filled(t)
	index := meili.New(meili.Server{URL: "http://127.0.0.1:1", Index: "sites"}, shelf)
	shelf.SetAstray(serving, true)
	if _, err := index.Search(t.Context(), finder.Query{Account: "a", Limit: 1}); !errors.Is(err, table.ErrAstray) {
		t.Errorf("got %v, want %v", err, table.ErrAstray)
	}
}

// filled is a shelf with places that serve, and hold nothing.
func filled(t *testing.T) (*table.Shelf, table.Copy) {
	t.Helper()
	shelf, err := table.OpenShelf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shelf.Close() })
	c, err := shelf.Build(t.Context(), table.Places, false)
	if err == nil {
		err = shelf.Serve(t.Context(), table.Places, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return shelf, c
}

func TestIndexThatIsLostIsNoticed(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Put(nil, shop("a", "p", "Magasin"))
	server := meilisearch.New(s.server.URL, meilisearch.WithAPIKey(s.server.Key), meilisearch.WithCustomClient(&http.Client{Transport: s.server.Transport}))
	task, err := server.DeleteIndex(s.server.Index)
	if err == nil {
		_, err = server.WaitForTask(task.TaskUID, time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = s.index.Tell(t.Context(), meili.Batch{Fill: fill, Sites: []table.Site{shop("a", "q", "Magasin")}})
	if !errors.Is(err, meili.ErrLost) {
		t.Errorf("got %v, want %v", err, meili.ErrLost)
	}
	if err := s.index.Seal(t.Context(), meili.Batch{Fill: fill, Position: 1}); err != nil {
		t.Fatal(err)
	}
	if told, err := s.index.Open(t.Context()); told.Fill != "" || err != nil {
		t.Errorf("got %+v, %v", told, err)
	}
	if _, err := s.index.Search(t.Context(), finder.Query{Account: "a", Limit: 1}); !errors.Is(err, finder.ErrBehind) {
		t.Errorf("got %v, want %v", err, finder.ErrBehind)
	}
}

func TestServerThatIsAwayOrSilentIsAnError(t *testing.T) {
	t.Parallel()
	shelf, _ := filled(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	index := meili.New(meili.Server{URL: "http://" + silent.Addr().String(), Key: "secret", Index: "sites"}, shelf)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, q := range []finder.Query{{Account: "a", Limit: 1}, {Account: "a", Limit: 1, Text: "x"}} {
		if _, err := index.Search(ctx, q); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	}
	silent.Close()
	_, err = index.Search(t.Context(), finder.Query{Account: "a", Limit: 1})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestRecordingsAreOfOneServer(t *testing.T) {
	t.Parallel()
	versions := meilitest.Versions(t)
	if len(versions) != 1 {
		t.Errorf("got recordings of %v, want those of one version", versions)
	}
	t.Logf("recorded with Meilisearch: %v", versions)
}
